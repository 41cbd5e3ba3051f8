"""The page "Evidence": every measured claim, with its chart, command and commit."""
