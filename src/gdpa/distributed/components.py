"""Find which nodes are connected to a label, and to which ones.

The *tag* of a component of the graph is the smallest number of a label in it. Each part knows its
own connected components. In each round they take the smallest tag of the components of other parts
that they are linked to, until nothing changes. Only tags of nodes on the border travel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import NDArray
from .folder import Folder
from .rows import GroupRows

Tags = NDArray[np.int64]

# The tag of a component without a label.
NO_LABEL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class GroupComponents:
    """The connected components of the parts of a group.

    Parameters
    ----------
    component : ndarray of int of shape (n_nodes,)
        Component of each node.
    starts : list of int
        First component of each part, and the number of components.
    """

    component: NDArray[np.int32]
    starts: list[int]

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return 4 * self.component.size


def load_components(rows: GroupRows) -> GroupComponents:
    """Read the connected components of the parts of a group."""
    folder = Folder(rows.url)
    components = []
    starts = [0]
    for part in rows.parts:
        component, count = folder.load(f"borders/{part:05d}", "component", "count")
        components.append(component + np.int32(starts[-1]))
        starts.append(starts[-1] + int(count[0]))
    return GroupComponents(np.concatenate(components), starts)


def first_tags(rows: GroupRows, components: GroupComponents) -> Tags:
    """Return the tag of each component: the smallest number of its own labels."""
    tags = np.full(components.starts[-1], NO_LABEL)
    np.minimum.at(tags, components.component[rows.labeled], rows.label)
    return tags


def node_tags(components: GroupComponents, tags: Tags) -> Tags:
    """Return the tag of each node."""
    return np.asarray(tags[components.component])


def tags_to_send(rows: GroupRows, components: GroupComponents, tags: Tags, other: int) -> Tags:
    """Return the tags of the nodes that another group needs."""
    return np.asarray(tags[components.component[rows.send[other]]])


def lower_tags(
    rows: GroupRows, components: GroupComponents, tags: Tags, hub_tags: Tags, *halo: Tags
) -> Tags:
    """Return the tags of components after they were compared with the tags around them.

    What components are linked to is read from the work folder, part by part, because it may need as
    much memory as the graph.
    """
    folder = Folder(rows.url)
    tags = tags.copy()
    others = np.concatenate([np.empty(0, dtype=np.int64), *halo])
    for part, first in zip(rows.parts, components.starts, strict=False):
        border, halo_number, hub_border, hub = folder.load(
            f"borders/{part:05d}",
            "border_component",
            "border_halo",
            "hub_component",
            "hub_number",
        )
        (part_halo,) = folder.load(f"rows/{part:05d}", "halo")
        place = np.searchsorted(rows.keys, part_halo)
        own = tags[components.component]
        around = np.concatenate([others[: rows.below], own, others[rows.below :]])[place]
        np.minimum.at(tags, border + first, around[halo_number])
        np.minimum.at(tags, hub_border + first, hub_tags[hub])
    return tags


def tags_for_hubs(rows: GroupRows, components: GroupComponents, tags: Tags, n_hubs: int) -> Tags:
    """Return the smallest tag of the components that each hub is linked to."""
    folder = Folder(rows.url)
    found = np.full(n_hubs, NO_LABEL)
    for part, first in zip(rows.parts, components.starts, strict=False):
        hub_border, hub = folder.load(f"borders/{part:05d}", "hub_component", "hub_number")
        np.minimum.at(found, hub, tags[hub_border + first])
    return found
