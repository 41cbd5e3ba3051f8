"""What is done with a view: each head fits one kind of model to what it looks at."""
