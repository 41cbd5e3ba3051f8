"""
Segmenting an image from a few strokes
======================================

Each pixel is a row with its colour and position. A few strokes label "flower" and "leaf". The graph
links pixels that are similar and close, and the labels spread along it.
"""

# %%
# Load a photograph from scikit-learn, and keep every fourth pixel.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import gdpa

image = load_sample_image("flower.jpg")[::4, ::4] / 255.0
height, width, _ = image.shape
row, column = np.mgrid[:height, :width]
# Colours range from 0 to 1; positions have less weight.
X = np.column_stack([image.reshape(-1, 3), 0.5 * row.ravel() / width, 0.5 * column.ravel() / width])

# %%
# Label some strokes: 0 is leaf, 1 is flower, -1 is unknown.
y = np.full((height, width), -1)
y[52:56, 75:95] = 1
y[10:14, 10:30] = y[90:94, 120:140] = y[85:89, 15:35] = y[20:24, 125:145] = 0

model = gdpa.CommitteeClassifier(n_jobs=2).fit(X, y.ravel())
flower = model.predict_proba(X)[:, 1].reshape(height, width)
print(f"{(y >= 0).sum()} pixels labelled, {height * width} classified")

# %%
# Draw the photograph with the strokes, the probability, the segment, and the uncertainty.
figure, axes = plt.subplots(2, 2, figsize=(6.6, 4.9), layout="constrained")
axes = axes.ravel()
axes[0].imshow(image)
axes[0].set_title("photograph with labels")
for label, colour in ((0, "#56b4e9"), (1, "#e69f00")):
    place = np.argwhere(y == label)
    axes[0].scatter(place[:, 1], place[:, 0], s=3, color=colour)
axes[1].imshow(flower, cmap="cividis", vmin=0, vmax=1)
axes[1].set_title("probability of flower")
axes[2].imshow(np.where(flower[..., None] > 0.5, image, 1.0))
axes[2].set_title("cut out")
axes[3].imshow(1.0 - 2.0 * np.abs(flower - 0.5), cmap="cividis", vmin=0, vmax=1)
axes[3].set_title("uncertainty")
for ax in axes:
    ax.set_axis_off()
plt.show()
