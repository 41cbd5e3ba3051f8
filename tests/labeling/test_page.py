"""A real browser goes through a whole session."""

from __future__ import annotations

import csv
import io
import signal
import zipfile

import numpy as np
import pytest

from gdpa import CommitteeClassifier
from gdpa.labeling.images import png

pytestmark = pytest.mark.slow


def name_of(page):
    return page.text_content("#row-name")


def row_of(page):
    return int(name_of(page).split()[1]) - 1


def moved_on(page, name):
    page.wait_for_function(
        "name => document.getElementById('row-name').textContent !== name", arg=name
    )


def give(page, value):
    """Answer by keyboard, with the number key of the class or by typing a new one."""
    name = name_of(page)
    keys = page.evaluate(
        "v => [...document.querySelectorAll('#classes button')]"
        ".filter(b => b.dataset.value === v).map(b => b.querySelector('kbd').textContent)",
        value,
    )
    if keys:
        page.keyboard.press(keys[0])
    else:
        page.keyboard.press("+")
        page.keyboard.type(value)
        page.keyboard.press("Enter")
    moved_on(page, name)


def answered(page, n):
    page.wait_for_function(
        "n => document.getElementById('progress-text').textContent.startsWith(`${n} of`)",
        arg=str(n),
    )


def sized(width):
    """A desktop or a phone."""
    return {"viewport": {"width": width, "height": 860 if width > 600 else 844}}


def pick(page, select, option):
    """Choose an option by keyboard: letters jump to it."""
    page.locator(select).focus()
    page.keyboard.type(option)
    assert page.input_value(select) == option


def violations(page):
    axe = pytest.importorskip("axe_core_python.sync_playwright")
    found = axe.Axe().run(page)["violations"]
    return [(v["id"], [node["html"][:200] for node in v["nodes"]]) for v in found]


def test_a_whole_session_by_keyboard_with_undo_reload_kill_and_resume(
    flowers, label_command, new_page, tmp_path
):
    folder, kinds, truth = flowers
    out = tmp_path / "done.csv"
    args = ["flowers.csv", "--target", "kind", "--id", "name", "--out", str(out)]
    server = label_command(*args, cwd=folder)
    page = new_page(server.url)
    assert page.text_content("#ask") == "Which kind is this?"
    for _ in range(12):
        give(page, kinds[truth[row_of(page)]])
    answered(page, 12)

    # Undo brings the last row back, without its label.
    give(page, kinds[truth[row_of(page)]])
    answered(page, 13)
    before = name_of(page)
    page.keyboard.press("Backspace")
    moved_on(page, before)
    answered(page, 12)
    assert page.locator("#classes button[aria-pressed=true]").count() == 0
    undone = name_of(page)

    # A reload shows the same question, with nothing lost.
    page.reload()
    page.wait_for_function("() => document.getElementById('row-name').textContent !== ''")
    assert name_of(page) == undone
    answered(page, 12)

    # A new class, seen to be wrong, corrected by going back.
    give(page, "orchid")
    page.wait_for_selector("#classes button[data-value=orchid]")
    now = name_of(page)
    page.keyboard.press("ArrowLeft")
    moved_on(page, now)
    assert name_of(page) == undone
    assert page.get_attribute("#classes button[data-value=orchid]", "aria-pressed") == "true"
    give(page, kinds[truth[row_of(page)]])
    page.wait_for_selector("#classes button[data-value=orchid]", state="detached")
    answered(page, 13)

    # Cannot tell: counted apart, and not asked again.
    skipped = name_of(page)
    page.keyboard.press("-")
    moved_on(page, skipped)
    page.wait_for_function(
        "() => document.getElementById('progress-text').textContent.includes('1 skipped')"
    )

    # The server is killed; the page says so, the resumed one goes on with all labels.
    server.kill()
    page.keyboard.press("1")
    page.wait_for_selector("#trouble:not([hidden])")
    page.close()
    server.start()
    page = new_page(server.url)
    answered(page, 13)
    while int(page.text_content("#progress-text").split()[0]) < 30:
        assert name_of(page) != skipped
        count = int(page.text_content("#progress-text").split()[0])
        give(page, kinds[truth[row_of(page)]])
        answered(page, count + 1)

    # The guess shows on demand only, the accuracy by itself.
    assert page.text_content("#guess-text") == ""
    server.followed()
    page.keyboard.press("?")
    page.wait_for_function("() => document.getElementById('guess-text').textContent.includes('%')")
    page.wait_for_function(
        "() => document.getElementById('accuracy-text').textContent.includes('expects')"
    )
    assert server.api("state")["estimate"]["answers"] == 30
    page.wait_for_selector("#accuracy-state", state="hidden")
    assert page.wrong == []

    # Everything can be kept, and Ctrl-C writes the table.
    for what, start in (("Table", b"name,"), ("Model", b"PK"), ("Report", b"<!doctype html>")):
        with page.expect_download() as download:
            page.get_by_role("link", name=what).click()
        content = download.value.path().read_bytes()
        assert content.lower().startswith(start.lower())
        if what == "Model":
            (tmp_path / "model.npz").write_bytes(content)
    server.end(signal.SIGINT)
    assert server.process.returncode == 0
    rows = list(csv.DictReader(out.open()))
    assert sum(row["kind"] != "" for row in rows) == 30
    assert all(r["kind"] in ("", kinds[k]) for r, k in zip(rows, truth, strict=True))
    right = [r["kind_predicted"] == kinds[k] for r, k in zip(rows, truth, strict=True)]
    assert sum(right) > 0.95 * len(right)
    assert CommitteeClassifier.load(tmp_path / "model.npz").classes_.tolist() == sorted(kinds)


def test_the_page_is_accessible_on_a_phone_and_in_the_dark(flowers, label_command, new_page):
    folder, kinds, truth = flowers
    server = label_command(
        "flowers.csv", "--target", "kind", "--log", str(folder / "axe.log"), cwd=folder
    )
    page = new_page(server.url)
    assert violations(page) == []
    for _ in range(24):
        give(page, kinds[truth[row_of(page)]])
    answered(page, 24)
    page.keyboard.press("?")
    server.followed()
    page.wait_for_function(
        "() => document.getElementById('accuracy-text').textContent.includes('expects')"
    )
    page.wait_for_function(
        "() => document.getElementById('map-text').textContent.includes('colour')"
    )
    for scheme in ("light", "dark"):
        for width, height in ((1280, 860), (390, 844), (320, 640)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            assert violations(page) == []
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels at a width of {width}"
    # On a phone: a finger on a class labels the row.
    name = name_of(page)
    page.locator("#classes button").first.click()
    moved_on(page, name)
    answered(page, 25)
    assert page.wrong == []


def test_keyboard_alone_reaches_the_map_and_the_list(flowers, label_command, new_page):
    folder, kinds, truth = flowers
    server = label_command(
        "flowers.csv", "--target", "kind", "--log", str(folder / "keys.log"), cwd=folder
    )
    page = new_page(server.url)
    labelled = set()
    for _ in range(4):
        labelled.add(name_of(page))
        give(page, kinds[truth[row_of(page)]])
    answered(page, 4)
    page.wait_for_function(
        "() => document.getElementById('map-text').textContent.includes('colour')"
    )
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if page.evaluate("document.activeElement.id") == "map":
            break
    assert {"new-name", "undo", "skip", "guess", "zoom-in", "map"} <= seen
    # Arrow keys walk over the map, Enter opens the row, a class key labels it.
    # Which rows were asked depends on how fast the model is: walk on to one without a label.
    for way in ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"] * 12:
        page.keyboard.press(way)
        said, _, about = page.text_content("#announcer").partition(", ")
        if about and said not in labelled:
            break
    assert about
    assert said not in labelled
    page.keyboard.press("Enter")
    page.wait_for_function(
        "name => document.getElementById('row-name').textContent === name", arg=said
    )
    page.keyboard.press("1")
    answered(page, 5)
    # The list: the last label first; Enter opens it, the cross beside it takes it away.
    page.locator("#labels button.open").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(
        "name => document.getElementById('row-name').textContent === name", arg=said
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    answered(page, 4)
    # Zoom keeps the map on the screen, a click on it opens a row.
    page.locator("#zoom-in").press("Enter")
    page.locator("#zoom-all").press("Enter")
    page.locator("#map").scroll_into_view_if_needed()
    place = page.evaluate(
        "() => { const m = document.getElementById('map').getBoundingClientRect();"
        " return [m.left, m.top, m.width, m.height]; }"
    )
    points = server.api("map")
    before = name_of(page)
    target = next(i for i, r in enumerate(points["rows"]) if f"row {r + 1}" != before)
    x = place[0] + place[2] / 2 + (points["x"][target] - 0.5) * (place[2] - 24)
    y = place[1] + place[3] / 2 + (points["y"][target] - 0.5) * (place[3] - 24)
    page.mouse.click(x, y)
    moved_on(page, before)
    assert page.wrong == []


def test_two_tabs_see_each_other_and_are_asked_different_rows(flowers, label_command, new_page):
    folder, kinds, truth = flowers
    server = label_command(
        "flowers.csv", "--target", "kind", "--log", str(folder / "two.log"), cwd=folder
    )
    one, two = new_page(server.url), new_page(server.url)
    for _ in range(6):
        assert name_of(one) != name_of(two)
        give(one, kinds[truth[row_of(one)]])
        give(two, kinds[truth[row_of(two)]])
    for page in (one, two):
        answered(page, 12)
        page.wait_for_function(
            "() => document.getElementById('progress-text').textContent.includes('1 other')"
        )
        page.wait_for_function("() => document.querySelectorAll('#labels li').length === 12")
    # Whoever stands on a cross of the list stays there when others add to it.
    stood = one.locator("#labels button.remove").nth(3)
    stood.focus()
    row = stood.get_attribute("data-row")
    give(two, kinds[truth[row_of(two)]])
    one.wait_for_function("() => document.querySelectorAll('#labels li').length === 13")
    held = one.evaluate("[document.activeElement.className, document.activeElement.dataset.row]")
    assert held == ["remove", row]
    assert one.wrong == two.wrong == []


def test_a_slow_answer_shows_no_row_before_it_is_on_disk(flowers, label_command, new_page):
    folder, kinds, truth = flowers
    log = folder / "slow.log"
    server = label_command("flowers.csv", "--target", "kind", "--log", str(log), cwd=folder)
    page = new_page(server.url)
    for count in range(5):
        give(page, kinds[truth[row_of(page)]])
        # One line for the head, one for every answer that has moved the page on.
        assert len(log.read_text().splitlines()) == 1 + count + 1
    held = []
    page.route("**/api/label", lambda route: held.append(route))  # on its way, and not answered yet
    name = name_of(page)
    page.keyboard.press("1")
    page.keyboard.press("1")  # twice by mistake: it must not answer for the next row
    for _ in range(1500):  # however busy the machine is
        if held:
            break
        page.wait_for_timeout(20)
    page.wait_for_timeout(300)
    assert name_of(page) == name
    assert len(log.read_text().splitlines()) == 6
    held[0].continue_()
    moved_on(page, name)
    page.wait_for_timeout(300)
    assert len(held) == 1
    assert len(log.read_text().splitlines()) == 7


def test_an_answer_overtaken_by_a_later_one_is_not_drawn(flowers, label_command, new_page):
    folder, kinds, truth = flowers
    server = label_command(
        "flowers.csv", "--target", "kind", "--log", str(folder / "overtaken.log"), cwd=folder
    )
    page = new_page(server.url)
    give(page, kinds[truth[row_of(page)]])
    answered(page, 1)
    held = []

    def hold(route):
        held.append((route, route.fetch()))

    def until(n):
        for _ in range(4500):  # however busy the machine is
            if len(held) >= n:
                return
            page.wait_for_timeout(20)

    page.route("**/api/state?**", hold)
    until(1)  # the page looks for news by itself: one label
    page.keyboard.press("Backspace")
    until(2)  # undone: none
    (first, old), (second, new) = held
    second.fulfill(response=new)
    answered(page, 0)
    first.fulfill(response=old)
    until(3)  # it looks for news again, so that it has done with the old ones
    assert page.text_content("#progress-text").startswith("0 of")
    assert page.wrong == []


def test_a_class_that_is_called_by_a_key_has_that_key(flowers, label_command, new_page):
    folder, _, _ = flowers
    classes = ["7", "1", "ant", "0", "axe", "x"]
    options = [word for name in classes for word in ("--class", name)]
    log = str(folder / "names.log")
    server = label_command("flowers.csv", "--target", "kind", "--log", log, *options, cwd=folder)
    page = new_page(server.url)
    keys = page.evaluate(
        "() => [...document.querySelectorAll('#classes button')]"
        ".map(b => [...b.querySelectorAll('kbd')].map(k => k.textContent).join(''))"
    )
    assert keys == ["7", "1", "2a", "0", "3e", "x"]
    for key, value in (("0", "0"), ("7", "7"), ("3", "axe"), ("x", "x")):
        name = name_of(page)
        page.keyboard.press(key)
        moved_on(page, name)
        assert server.api("labels")[0]["value"] == value
    assert page.wrong == []


@pytest.mark.parametrize("width", [1280, 390])
def test_classes_are_edited_and_keys_chosen(flowers, label_command, new_page, width):
    folder, kinds, truth = flowers
    log = str(folder / f"edit{width}.log")
    server = label_command("flowers.csv", "--target", "kind", "--log", log, cwd=folder)
    page = new_page(server.url, **sized(width))
    assert page.is_disabled("#undo")
    assert page.is_hidden("#edit")
    assert page.text_content("#proved") == "Give the first label"
    for _ in range(8):
        give(page, kinds[truth[row_of(page)]])
    answered(page, 8)
    names = "() => [...document.querySelectorAll('#classes button')].map(b => b.dataset.value)"
    assert page.evaluate(names) == ["lily", "rose", "tulip"]  # whichever came first

    # A key of one's own.
    page.locator("#edit summary").press("Enter")
    pick(page, "#edit-class", "tulip")
    page.locator("#edit-key").press("Control+a")
    page.keyboard.type("z")
    name = name_of(page)
    page.locator("#ask").focus()
    page.keyboard.press("z")
    moved_on(page, name)
    assert server.api("labels")[0]["value"] == "tulip"
    answered(page, 9)

    # Rename, merge, delete; undo takes each back.
    def classes():
        return [
            c["value"] for c in sorted(server.api("state")["classes"], key=lambda c: c["value"])
        ]

    def wait_for(*expected):
        page.wait_for_function(
            "names => [...document.querySelectorAll('#classes button')]"
            ".map(b => b.dataset.value).join() === names",
            arg=",".join(expected),
        )

    for old, new in (("rose", "dog rose"), ("dog rose", "tulip")):
        pick(page, "#edit-class", old)
        page.locator("#edit-name").focus()
        page.keyboard.type(new)
        page.keyboard.press("Enter")
        wait_for(*(["dog rose", "lily", "tulip"] if old == "rose" else ["lily", "tulip"]))
    pick(page, "#edit-class", "lily")
    page.locator("#edit-delete").press("Enter")
    wait_for("tulip")
    assert classes() == ["tulip"]
    for expected in (["lily", "tulip"], ["dog rose", "lily", "tulip"], ["lily", "rose", "tulip"]):
        page.locator("#undo").press("Enter")
        wait_for(*expected)
    answered(page, 9)
    assert violations(page) == []
    # Another name has nothing to undo.
    page.locator(".menu summary").press("Enter")
    page.locator("#my-name").focus()
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo:disabled")
    assert violations(page) == []
    assert page.wrong == []


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_are_labelled_at_once_from_a_row_and_from_the_map(
    flowers, label_command, new_page, width
):
    folder, kinds, truth = flowers
    log = str(folder / f"bulk{width}.log")
    server = label_command("flowers.csv", "--target", "kind", "--log", log, cwd=folder)
    page = new_page(server.url, **sized(width))
    for _ in range(12):
        give(page, kinds[truth[row_of(page)]])
    answered(page, 12)
    server.followed()
    # Labels of similar rows are a hint like the prediction: shown on request only.
    assert page.locator("#near-panel").is_hidden()
    page.keyboard.press("?")
    page.wait_for_selector("#near li")
    page.keyboard.press("=")
    page.wait_for_selector("#bulk:not([hidden])")
    many = int(page.text_content("#bulk-apply").split()[1])
    assert page.locator("#bulk-preview li").count() == min(12, many)
    # The buttons are in sight, and nothing covers them.
    for button in ("bulk-apply", "bulk-cancel"):
        assert page.evaluate(
            """name => {
              const box = document.getElementById(name).getBoundingClientRect();
              const top = document.elementFromPoint(box.x + box.width / 2, box.bottom - 2);
              return top !== null && top.id === name;
            }""",
            button,
        )
    assert violations(page) == []
    page.locator("#bulk-apply").press("Enter")
    answered(page, 12 + many)
    page.wait_for_function(
        "() => document.getElementById('map-text').textContent.includes('colour')"
    )
    # The map learns late that the labels were undone.
    page.evaluate(
        """() => {
          const plain = window.fetch;
          window.fetch = async (address, ...rest) => {
            if (address.includes('colours')) await new Promise((go) => setTimeout(go, 1000));
            return plain(address, ...rest);
          };
        }"""
    )
    page.locator("#undo").press("Enter")
    answered(page, 12)

    # Part of the map: by a rectangle, and by the keyboard alone.
    page.wait_for_function("() => document.getElementById('announcer').textContent === 'Undone.'")
    page.wait_for_selector("#near-panel", state="hidden")  # it moves the map on a narrow screen
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_selector("#bulk:not([hidden])")
    assert page.text_content("#bulk-apply") == "Label 108 rows"
    page.keyboard.press("Escape")
    page.wait_for_selector("#bulk", state="hidden")
    page.locator("#map-select").press("Enter")
    page.wait_for_selector("#bulk:not([hidden])")
    pick(page, "#bulk-class", "lily")
    page.locator("#bulk-apply").press("Enter")
    answered(page, 120)
    page.keyboard.press("Control+z")
    answered(page, 12)
    assert page.wrong == []


@pytest.mark.parametrize("width", [1280, 390])
def test_annotators_overlap_disagree_and_settle(flowers, label_command, new_page, width):
    folder, kinds, truth = flowers
    log = str(folder / f"overlap{width}.log")
    args = ("--target", "kind", "--log", log, "--overlap", "0.5")
    server = label_command("flowers.csv", *args, cwd=folder)
    asked = set()
    for i in range(24):
        who = ("ann", "bob")[i % 2]
        row = server.api("next", {"n": 1, "by": who})[0]
        assert row["label"] is None  # nobody sees the other's answer
        again = row["row"] in asked
        value = "orchid" if again and i % 3 else kinds[truth[row["row"]]]
        asked.add(row["row"])
        server.api("label", {"row": row["row"], "value": value, "by": who})
    wrong = server.api("state")["disagreements"]
    assert wrong > 0
    page = new_page(server.url, **sized(width))
    page.wait_for_function(
        "() => document.getElementById('agreement').textContent.includes('kappa')"
    )
    line = page.locator("#doubts button").first
    assert line.text_content().startswith("Resolve: ")
    line.press("Enter")
    row = int(page.locator("#doubts button").first.get_attribute("data-row"))
    page.wait_for_function(
        "name => document.getElementById('row-name').textContent === name", arg=f"row {row + 1}"
    )
    page.locator("#classes button[data-value=lily]").press("Enter")
    page.wait_for_function(
        "n => [...document.querySelectorAll('#doubts button')]"
        ".filter(b => b.textContent.startsWith('Resolve')).length === n",
        arg=wrong - 1,
    )
    assert violations(page) == []
    status, _, content = server.request("GET", f"/{server.token}/export/table?who=1")
    assert status == 200
    first = next(csv.DictReader(content.decode().splitlines()))
    assert {"kind_by", "kind_at", "kind_by_ann", "kind_by_bob"} <= set(first)
    assert page.wrong == []


def test_ten_classes_leave_the_picture_in_sight_on_a_phone(label_command, new_page, tmp_path):
    rng = np.random.default_rng(0)
    np.savetxt(
        tmp_path / "pixels.csv",
        rng.integers(0, 16, (40, 64)),
        fmt="%d",
        delimiter=",",
        header=",".join(f"p{i}" for i in range(64)),
        comments="",
    )
    classes = [word for digit in range(10) for word in ("--class", str(digit))]
    server = label_command("pixels.csv", "--target", "digit", "--shape", "8x8", *classes)
    page = new_page(server.url, viewport={"width": 390, "height": 844})
    page.wait_for_selector(".picture img.small")
    picture = page.locator(".picture img").bounding_box()
    bar = page.locator("#answer").bounding_box()
    assert picture["y"] + picture["height"] <= bar["y"]
    assert bar["y"] + page.locator("#classes").bounding_box()["height"] <= 844
    assert violations(page) == []
    assert page.wrong == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_folder_of_pictures_is_labelled_checked_and_exported(
    label_command, new_page, tmp_path, width
):
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    for i in range(60):
        # A bright left or upper half; the first twenty are in folders, one in the wrong one.
        upper = (i % 2 == 1) ^ (i == 6)
        place = tmp_path / "photos" / (["left", "upper"][i % 2] if i < 20 else "")
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (16, 16, 3))
        pixels[(slice(8),) if upper else (slice(None), slice(8))] += 190
        (place / f"{i}.png").write_bytes(png(pixels.astype(np.uint8)))
    server = label_command("photos", "--target", "part", "--who")
    page = new_page(server.url, **sized(width))
    page.wait_for_selector(".picture img.small")
    answered(page, 20)
    names = "() => [...document.querySelectorAll('#classes button')].map(b => b.dataset.value)"
    assert page.evaluate(names) == ["left", "upper"]

    # Twelve more; the estimate is drawn together with the count.
    for count in range(21, 33):
        number = int(name_of(page).split("/")[-1].split(".")[0])
        give(page, "upper" if number % 2 else "left")
        answered(page, count)
        text = page.text_content("#accuracy-text")
        assert count < 30 or f"based on {count - 20} answers" in text
    server.followed()
    page.wait_for_selector("#accuracy-state", state="hidden")

    def stale(route):
        answer = route.fetch()
        old = {"following": True, "trained": answer.json()["trained"] - 3}
        route.fulfill(response=answer, json={**answer.json(), **old})

    page.route("**/api/state?**", stale)
    page.wait_for_selector("#accuracy-state:not([hidden])")
    assert page.text_content("#accuracy-state") == "Updating with 3 new answers …"
    page.unroute("**/api/state?**")

    # The picture in the wrong folder is the first to check; opened and corrected by keyboard.
    page.wait_for_selector("#doubts button")
    line = page.locator("#doubts button").first
    assert line.text_content().startswith("left: is it upper")
    assert line.text_content().endswith("6.png")
    assert line.locator("img").evaluate("i => i.decode().then(() => i.naturalWidth)") == 16
    assert violations(page) == []
    line.press("Enter")
    page.wait_for_function(
        "() => document.getElementById('row-name').textContent.endsWith('6.png')"
    )
    upper = page.locator("#classes button[data-value=upper]")
    assert upper.get_attribute("aria-pressed") == "false"
    upper.press("Enter")
    answered(page, 32)
    server.followed()
    page.wait_for_function("() => !document.getElementById('doubts').textContent.includes('6.png')")

    # All formats, with who and when.
    page.locator(".menu summary").press("Enter")
    page.locator("#who").press("Space")
    assert violations(page) == []
    for what, start in (
        ("Table", b"file,part,part_predicted,part_probability,part_skipped,part_by,part_at"),
        ("JSON lines", b'{"file": '),
        ("Label Studio", b"["),
        ("Folders (ZIP)", b"PK"),
    ):
        with page.expect_download() as download:
            page.get_by_role("link", name=what).press("Enter")
        content = download.value.path().read_bytes()
        assert content.startswith(start), (what, content[:200])
    assert zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert page.wrong == []
