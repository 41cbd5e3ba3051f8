"""
A table with numbers, categories, dates, text and missing cells
===============================================================

Most data are not matrices. This example uses a table of orders as a shop might have it: amounts
with outliers, a category, dates, remarks in free text, an order number, and missing cells.
``fit`` accepts it unchanged; ``columns_`` lists how each column was encoded, and why.
"""

# %%
# Create the table. Some orders were returned.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gdpa

rng = np.random.default_rng(0)
n = 800
returned = rng.random(n) < 0.4
remarks = np.array(["please ring the bell", "leave it with a neighbour", "behind the shed"])
unsure = np.array(["size M, or L if it runs small", "not sure about the size", "two sizes to try"])
orders = pd.DataFrame(
    {
        "order": np.arange(10_000, 10_000 + n),
        "amount": np.exp(rng.normal(3.5 + 0.5 * returned, 0.6)).round(2),
        "items": 1 + rng.poisson(1 + 2 * returned),
        "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 2500, n), unit="D"),
        "delivery": np.where(rng.random(n) < 0.3 + 0.4 * returned, "slow", "fast"),
        "remark": np.where(returned, rng.choice(unsure, n), rng.choice(remarks, n)),
    }
)
orders.loc[rng.random(n) < 0.05, "amount"] = np.nan

# %%
# Forty orders have a label; predict the others.
answer = pd.Series(np.where(returned, "returned", "kept"), dtype=object)
answer[rng.permutation(n)[40:]] = None

model = gdpa.CommitteeClassifier(unlabeled=None).fit(orders, answer)
print(model.columns_)

# %%
# Measure the accuracy on the hidden labels, and the contribution of each kind of column.
hidden = answer.isna().to_numpy()
truth = np.where(returned, "returned", "kept")[hidden]
kinds = {
    "numbers": ["amount", "items"],
    "+ categories": ["amount", "items", "delivery"],
    "+ dates": ["amount", "items", "delivery", "since"],
    "all": list(orders.columns),
}
shares = {}
for name, columns in kinds.items():
    fitted = gdpa.CommitteeClassifier(unlabeled=None).fit(orders[columns], answer)
    shares[name] = (fitted.transduction_[hidden] == truth).mean()
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
bars = ax.barh(list(shares), [100 * v for v in shares.values()], color="#0072b2")
ax.bar_label(bars, fmt="%.1f %%", padding=4)
ax.set(xlabel="accuracy on hidden labels, %", xlim=(50, 104), title="Which columns help")
ax.invert_yaxis()
plt.show()
