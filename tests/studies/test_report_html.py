"""The report is one sound file: nothing from outside, nothing unescaped, nothing left out."""

import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from tacit_studies import Figure, Findings, Finished, Panel, Reproduction, Row, Series, papers
from tacit_studies.report.formulas import plain, short
from tacit_studies.report.html import prose, script_json, write_report

NASTY = "</script><script>alert('x')</script> & \"quoted\" {braces} {{ 7 * 7 }} {% if %}"
VERDICTS = ("reproduced", "partly", "not reproduced", "cannot be decided")
VOID = {"meta", "br", "hr", "img", "input", "link"}


def line_figure(n=5, **more):
    x = [float(2**k) for k in range(n)]
    return Figure(
        "Regret",
        "epsilon",
        "regret",
        [
            Series("GAP", x, [10 / v for v in x], [9 / v for v in x], [11 / v for v in x]),
            Series("reference", x, [1.0] * n, dashed=True),
        ],
        **more,
    )


def bar_figure():
    return Figure(
        "Bars",
        "",
        "regret",
        [Series("one", [0.0, 1.0], [3.0, 4.0]), Series("two", [1.0], [5.0], [4.5], [5.5])],
        kind="bar",
        ticks=["first environment", "second environment"],
    )


def map_figure():
    x, y = [10.0, 100.0, 1000.0], [0.5, 0.75]
    values = [[0.4, 0.3], [0.2, 0.1], [0.05, math.nan]]
    panel = Panel("epsilon = 1", x, y, values, Series("recommended", x, [0.7, 0.6, 0.5]))
    return Figure(
        "Map", "agents", "beta", [], x_log=True, kind="map", panels=[panel], value_label="regret"
    )


def study(
    name, paper, verdict="reproduced", figures=(), quick=True, skipped=False, own=False, **more
):
    words = {"title": f"Title of {name}", "question": "Why?", "claim": "It is so.", **more}
    because = words.pop("because", f"Because of {name}.")
    privacy = words.pop("privacy", "")
    rows = [
        Row("a number", "1", "1.01 ± 0.2", "1.02", True),
        Row("another", "", "7", agrees=False, within="3 points"),
        Row("a third", "2", "2"),
    ]
    reproduction = Reproduction(
        name=name, paper=paper, jobs=lambda _: [], judge=lambda *_: None, own=own, **words
    )
    findings = Findings(
        verdict=verdict,
        because=because,
        rows=rows,
        figures=list(figures),
        privacy=privacy,
        agreement="Two numbers agree if they are the same.",
    )
    return Finished(reproduction, quick, findings, "9.8.7", skipped)


def everything():
    return [
        *(
            study(f"{paper.name}-{i}", paper.name, verdict, [line_figure(x_log=True)][i:])
            for paper in papers()
            for i, verdict in enumerate(VERDICTS)
        ),
        study("lu2022-bars", "lu2022", "partly", [bar_figure(), map_figure()], quick=False),
        study("wang2020-data", "wang2020", "cannot be decided", skipped=True),
        study("gajane2023-privacy", "gajane2023", privacy="Holds for one reward."),
        study("tao2022-ours", "tao2022", "own finding", own=True),
        study(
            "trade-off",
            "",
            "own finding",
            own=True,
            figures=[line_figure(kind="points"), line_figure(y_log=True)],
        ),
    ]


class Reader(HTMLParser):
    """Checks nesting, and keeps ids, links, outside references, data and the text of every section."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.outside, self.data = [], [], [], [], []
        self.sections = {}
        self.tags = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for key in ("src", "srcset", "href", "data", "action", "poster"):
            value = attributes.get(key)
            if value is None:
                continue
            if tag == "a" and key == "href":
                self.links.append(value)
            else:
                self.outside.append(value)
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if attributes.get("type") == "application/json":
            self.data.append(json.loads(data))
        elif tag not in ("script", "style"):
            for name, outer in self.open:
                if name == "section":
                    self.sections[outer["id"]] = self.sections.get(outer["id"], "") + data


def report(finished, folder):
    path = write_report(finished, folder)
    assert path == folder / "report.html"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    text = report(everything(), folder)
    return text, Reader(text), folder


def test_nothing_is_fetched(page):
    text, reader, _ = page
    assert reader.outside == []
    assert not reader.tags & {"img", "link", "iframe", "object", "embed", "base"}
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttp|import\s*\(", text)
    assert "default-src 'none'" in text


def test_the_check_of_fetching_can_fail():
    found = Reader('<section id="a"><img src="https://example.org/a.png"></section>')
    assert found.outside == ["https://example.org/a.png"]


def test_every_link_leads_somewhere(page):
    _, reader, folder = page
    assert len(set(reader.ids)) == len(reader.ids)
    assert len(reader.links) > 30
    for link in reader.links:
        assert link[1:] in reader.ids if link.startswith("#") else (folder / link).is_file()


def test_every_study_stands_in_its_page_with_its_verdict(page):
    _, reader, _ = page
    for done in everything():
        name, verdict = done.reproduction.name, done.findings.verdict
        said = reader.sections[name]
        size = " --quick" if done.quick else ""
        assert f"tacit reproduce {name}{size}" in said
        assert done.findings.because in said
        assert done.reproduction.question in said
        assert ("full size" if not done.quick else "quick size") in said
        assert "Tacit 9.8.7" in said
        if done.reproduction.paper:
            assert re.search(rf"[✓◐✗?◆] {verdict}\s*(The question|Not run)", said)
            assert "✓ agrees" in said
            assert "✗ differs" in said
            assert "within 3 points" in said
            assert "What agreement means here: Two numbers agree if they are the same." in said
            assert said in reader.sections[f"paper-{done.reproduction.paper}"]
            assert done.findings.because in reader.sections["overview"]
    assert "data set is missing" in reader.sections["wang2020-data"]
    assert "Holds for one reward." in reader.sections["gajane2023-privacy"]
    assert "Holds for one reward." in reader.sections["overview"]
    assert reader.sections["trade-off"] in reader.sections["overview"]


def test_verdicts_are_counted(page):
    _, reader, _ = page
    overview = reader.sections["overview"]
    for count in ("6 reproduced", "6 partly", "5 not reproduced", "6 cannot be decided"):
        assert count in overview


def test_own_findings_are_no_verdict_on_a_paper(page):
    _, reader, _ = page
    overview = reader.sections["overview"]
    assert "of 5 papers, measured again: 23." in overview
    assert "for or against a paper: 2." in overview
    assert not re.search(r"\d own finding", overview)
    assert "We expected" in reader.sections["tao2022-ours"]
    assert "The paper says" not in reader.sections["tao2022-ours"]


def test_the_report_knows_no_paper_by_its_number():
    folder = Path(str(files("tacit_studies.report")))
    sources = [p for p in folder.rglob("*") if p.suffix in (".py", ".html", ".js", ".css")]
    assert len(sources) > 10
    for path in sources:
        assert not re.search(r"(?<![\d,.])00[0-9]\b|trade.off", path.read_text(encoding="utf-8")), (
            path
        )


def test_papers_that_were_not_run_are_named(tmp_path):
    reader = Reader(report([study("gajane2023-a", "gajane2023")], tmp_path))
    for paper in papers():
        shown = reader.sections[f"paper-{paper.name}"]
        assert paper.title in shown
        assert paper.question in shown
        assert ("Not run yet" in shown) == (paper.name != "gajane2023")


def test_long_tables_are_folded_and_complete(tmp_path):
    done = study("gajane2023-a", "gajane2023")
    done.findings.rows.extend(Row(f"row {i}", "", f"{i}.5") for i in range(30))
    reader = Reader(report([done], tmp_path))
    assert "23 more numbers" in reader.sections["gajane2023-a"]
    assert all(f"row {i}–{i}.5" in reader.sections["gajane2023-a"] for i in range(30))


def test_a_study_of_an_unknown_paper_is_not_lost(tmp_path):
    reader = Reader(report([study("777-a", "777")], tmp_path))
    assert "Because of 777-a." in reader.sections["paper-777"]


def test_everything_is_escaped(tmp_path):
    figure = Figure(NASTY, NASTY, NASTY, [Series(NASTY, [1.0, 2.0], [1.0, 2.0])], caption=NASTY)
    done = study(
        "gajane2023-a",
        "gajane2023",
        figures=[figure],
        title=NASTY,
        question=NASTY,
        claim=NASTY,
        because=NASTY,
        privacy=NASTY,
    )
    text = report([done], tmp_path)
    reader = Reader(text)
    assert "<script>alert" not in text
    assert reader.sections["gajane2023-a"].count("alert('x')") >= 6
    assert reader.data[0]["series"][0]["label"] == NASTY


def test_the_data_of_a_chart_are_those_of_the_figure(page):
    _, reader, _ = page
    chart = reader.data[0]
    given = line_figure(kind="points")
    assert chart["kind"] == "points"
    assert [s["y"] for s in chart["series"]] == [s.y for s in given.series]
    assert chart["series"][0]["low"] == given.series[0].low
    assert chart["series"][1]["dashed"]
    assert chart["colours"] == [0, 1]


def test_a_map_has_its_values_its_scale_and_its_contours(page):
    _, reader, _ = page
    chart = next(data for data in reader.data if data["kind"] == "map")
    (panel,) = chart["panels"]
    assert panel["values"] == [[0.4, 0.3], [0.2, 0.1], [0.05, None]]
    assert (chart["low"], chart["high"], chart["levels"]) == (0.05, 0.4, [0.1, 0.2])
    assert panel["x_edges"] == pytest.approx([10**0.5, 10**1.5, 10**2.5, 10**3.5])
    assert panel["y_edges"] == [0.375, 0.625, 0.875]
    assert [each["level"] for each in panel["contours"]] == [0.1, 0.2]
    assert panel["curve"]["y"] == [0.7, 0.6, 0.5]
    said = reader.sections["lu2022-bars"]
    assert "epsilon = 1, agents 1000.20.1" in said


def test_numbers_that_are_none_are_gaps(tmp_path):
    series = Series(
        "a", [1.0, 2.0, 3.0], [1.0, math.nan, math.inf], [0.5, math.nan, 1.0], [2.0, 2.0, math.inf]
    )
    reader = Reader(
        report(
            [study("gajane2023-a", "gajane2023", figures=[Figure("t", "x", "y", [series])])],
            tmp_path,
        )
    )
    assert reader.data[0]["series"][0]["y"] == [1.0, None, None]
    assert "∞" in reader.sections["gajane2023-a"]


def test_long_curves_keep_their_ends_and_the_file_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit_studies.report.html.draw_figure", lambda *_: [])
    n = 20_000
    x = [float(k + 1) for k in range(n)]
    y = [math.sqrt(v) * math.pi for v in x]
    heavy = Figure("Heavy", "t", "regret", [Series(f"s{i}", x, y, y, y) for i in range(6)])
    finished = [study(f"gajane2023-{i}", "gajane2023", figures=[heavy]) for i in range(40)]
    text = report(finished, tmp_path)
    assert len(text.encode()) < 10e6
    first = Reader(text).data[0]["series"][0]
    assert (first["x"][0], first["x"][-1]) == (1.0, float(n))
    assert len(first["x"]) <= 250


def test_figures_are_written_for_papers_too(page):
    *_, folder = page
    made = {path.name for path in (folder / "figures").iterdir()}
    wanted = {
        f"{done.reproduction.name}-{i}.{ending}"
        for done in everything()
        for i in range(1, len(done.findings.figures) + 1)
        for ending in ("svg", "pdf")
    }
    assert made == wanted


def test_the_same_findings_give_the_same_file(tmp_path):
    done = [study("lu2022-bars", "lu2022", figures=[bar_figure()])]
    one, two = (report(done, tmp_path / name) for name in ("one", "two"))
    assert one == two


def colours_of(css, dark):
    light, _, rest = css.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", light))
    if dark:
        found |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", rest))
    return found


def contrast(one, two):
    def luminance(colour):
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark):
    c = colours_of(
        files("tacit_studies.report").joinpath("pages", "page.css").read_text(encoding="utf-8"),
        dark,
    )
    pairs = [(c[t], c[g]) for t in ("text", "soft", "link") for g in ("ground", "raised")]
    pairs += [(c[v], c[f"{v}-ground"]) for v in ("good", "half", "bad", "open")]
    assert contrast("#777777", "#ffffff") < 4.5 < contrast("#767676", "#ffffff")
    for text, ground in pairs:
        assert contrast(text, ground) >= 4.5, (text, ground)


@pytest.fixture
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not here")
    return found


def test_the_script_is_javascript(node):
    script = files("tacit_studies.report").joinpath("pages", "chart.js")
    subprocess.run([node, "--check", str(script)], check=True, timeout=60)


def test_axes_have_ticks_inside_their_range(node):
    script = files("tacit_studies.report").joinpath("pages", "chart.js").read_text(encoding="utf-8")
    page = "const document = {querySelectorAll: () => [], querySelector: () => ({id: ''})};"
    page += "const location = {hash: ''}; const addEventListener = () => {};"
    ask = """
    const ranges = [[0, 1], [0.001, 0.0037], [-5, 12], [3, 3.4], [1, 1e6], [250, 17000], [2, 5]];
    const all = ([a, b]) => [a, b, linearTicks(a, b), a > 0 ? logTicks(a, b) : null];
    console.log(JSON.stringify(ranges.map(all)));
    """
    done = subprocess.run(
        [node, "-e", page + script + ask], check=True, capture_output=True, text=True, timeout=60
    )
    for low, high, linear, log in json.loads(done.stdout):
        for ticks in filter(None, (linear, log)):
            slack = 0.001 * max(abs(low), abs(high))
            assert all(low - slack <= t <= high + slack for t in ticks)
            assert ticks == sorted(set(ticks))
        assert 3 <= len(linear) <= 11
        if log is not None and high / low > 1.5:
            assert 2 <= len(log) <= 9


def test_a_browser_draws_every_chart_it_shows(page, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is here")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path}",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ]
    where = (page[2] / "report.html").as_uri() + "#paper-lu2022"
    done = subprocess.run(
        [browser, *flags, where], capture_output=True, text=True, timeout=120, check=True
    )
    shown = done.stdout.partition('id="paper-lu2022"')[2].partition('id="paper-gajane2023"')[0]
    drawings = re.findall(r'<div class="drawing">(.*?)</div>', shown, re.S)
    assert len(drawings) == 3
    assert all('class="label"' in each for each in drawings)
    *charts, drawn_map = drawings
    assert all('class="line c0"' in each or 'class="fill c0"' in each for each in charts)
    assert drawn_map.count("<title>epsilon = 1, agents") == 5
    assert drawn_map.count('class="contour"') >= 2
    assert shown.count('aria-pressed="true"') == 4


def test_markup_escapes_what_is_not_markup():
    assert prose("a<b, T^0.5, (x)^2, e^eps") == (
        "a&lt;b, T<sup>0.5</sup>, (x)<sup>2</sup>, e<sup>eps</sup>"
    )
    assert prose("sqrt(T) and sqrt N") == "√(T) and √N"
    assert plain("<10^-4, sqrt N") == "<10⁻⁴, √N"
    assert "<" not in script_json({"a": "</script>"})
    assert json.loads(script_json({"a": "</script>"})) == {"a": "</script>"}
    with pytest.raises(ValueError, match="compliant"):
        script_json([math.nan])


def test_numbers_are_short():
    given = [0.0, 1234.5, -0.000123456, math.inf, math.nan, 2e12]
    assert [short(v) for v in given] == ["0", "1,234", "-0.0001235", "∞", "–", "2e+12"]


def test_package_data_is_found():
    folder = Path(str(files("tacit_studies.report"))) / "pages"
    names = {path.name for path in folder.iterdir()}
    assert {
        "page.html",
        "overview.html",
        "study.html",
        "figure.html",
        "page.css",
        "chart.js",
    } <= names
