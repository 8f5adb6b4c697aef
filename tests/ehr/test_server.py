"""The loopback server itself: one a process, large bodies, clean stops, nothing of a patient in a log."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from runtime import ehr
from runtime.ehr import rest
from runtime.ehr.server import LoopbackServer
from runtime.ehr.session import Response
from tasks.errors import EnvironmentFault
from tasks.fhir.chart import Chart

if TYPE_CHECKING:
    from conftest import Client

ROOT = Path(__file__).resolve().parents[2]


def test_a_body_of_100_mb_is_refused_with_413_and_the_session_goes_on(client: Client, session: ehr.Session) -> None:
    answer = client.send("POST", "Observation", b" " * (100 * 1024 * 1024), {"Content-Type": "application/fhir+json"})
    assert answer.status == 413
    assert json.loads(answer.body)["resourceType"] == "OperationOutcome"
    assert client.search("Patient?_summary=count")["total"] == 2
    assert session.ledger == ()


def test_a_body_of_100_mb_sent_in_chunks_is_refused_too(session: ehr.Session) -> None:
    url = urlsplit(session.base_url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port or 80, timeout=60)
    chunk = b" " * (1024 * 1024)
    connection.request("POST", f"{url.path}/Observation", iter([chunk] * 100), encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    assert session.ledger == ()


def test_a_note_of_5_mb_is_taken(client: Client) -> None:
    note = {
        "resourceType": "Communication",
        "status": "completed",
        "subject": {"reference": "Patient/p1"},
        "payload": [{"contentString": "Grüße " * 800_000}],
    }
    answer = client.create(note)
    assert answer.status == 201
    assert json.loads(answer.body)["payload"] == note["payload"]


def test_a_body_cut_off_in_the_middle_writes_nothing(session: ehr.Session, client: Client, order: Any) -> None:
    url = urlsplit(session.base_url)
    sent = json.dumps(order).encode()
    with socket.create_connection(("127.0.0.1", url.port or 80)) as raw:
        head = f"POST {url.path}/ServiceRequest HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent) + 10}\r\n\r\n"
        raw.sendall(head.encode() + sent)
    assert client.search("ServiceRequest?_summary=count")["total"] == 0
    assert session.ledger == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /s/x/fhir/Patient HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /s/x/fhir/Patient HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_the_server_goes_on(session: ehr.Session, client: Client, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(session.base_url).port or 80)) as connection:
        connection.sendall(raw)
        assert connection.recv(12) == b"HTTP/1.1 400"
    assert client.search("Patient?_summary=count")["total"] == 2


@pytest.mark.parametrize("path", ["/", "/s/", "/s/guess/fhir/Patient/p1", "/fhir/Patient/p1", "/s/{token}/Patient/p1"])
def test_nothing_is_served_outside_a_sessions_own_path(session: ehr.Session, path: str) -> None:
    url = urlsplit(session.base_url)
    token = url.path.split("/")[2]
    connection = http.client.HTTPConnection("127.0.0.1", url.port or 80, timeout=60)
    connection.request("GET", path.replace("{token}", token))
    answer = connection.getresponse()
    assert answer.status == 404
    assert json.loads(answer.read())["resourceType"] == "OperationOutcome"
    connection.close()


def test_many_clients_at_once_each_see_their_own_session(
    chart: Chart, connect: Callable[[str], Client], order: Any
) -> None:
    faults: list[BaseException] = []

    def work(writes: int) -> None:
        try:
            with ehr.open(chart) as session:
                client = connect(session.base_url)
                for number in range(writes):
                    assert client.create(order).status == 201
                    assert client.search("ServiceRequest?patient=p1&_summary=count")["total"] == number + 1
                assert [entry.sequence for entry in session.ledger] == list(range(1, writes + 1))
                client.close()
        except BaseException as fault:  # noqa: BLE001 (a thread's fault must reach the test)
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(5 + number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_many_clients_of_one_session_write_each_once(
    session: ehr.Session, connect: Callable[[str], Client], order: Any
) -> None:
    def work() -> None:
        client = connect(session.base_url)
        for _ in range(10):
            client.create(order)
            session.create(order)
        client.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.sequence for entry in session.ledger] == list(range(1, 81))
    assert len({entry.reference for entry in session.ledger}) == 80
    assert session.records.search("ServiceRequest", [("_count", "0")]).total == 80


def test_a_server_stops_and_gives_its_port_back() -> None:
    server = LoopbackServer()
    url = server.mount(lambda request: Response(200, (), request.path.encode()))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", f"{urlsplit(url).path}/Patient/x%2Fy")
    answer = connection.getresponse()
    assert answer.read() == b"Patient/x%2Fy"
    server.stop()
    server.stop()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port)).close()
    again = LoopbackServer(server.port)
    again.stop()
    connection.close()


def test_a_port_in_use_is_an_environment_fault_that_says_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EnvironmentFault, match="0 to let"):
            LoopbackServer(taken.getsockname()[1])


def test_a_fault_of_ours_is_500_without_the_text_of_the_record(capfd: pytest.CaptureFixture[str]) -> None:
    def broken(request: rest.Request) -> Response:
        raise ValueError("Maja Åkesson-Lind, MRN001")

    server = LoopbackServer()
    url = urlsplit(server.mount(broken))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", f"{url.path}/Patient?name=Maja")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 500
    assert b"ValueError" in body
    assert b"Maja" not in body
    connection.close()
    server.stop()
    printed = capfd.readouterr()
    assert "Maja" not in printed.out + printed.err


def test_a_forked_child_gets_a_server_of_its_own(chart: Chart) -> None:
    script = (
        "import os, sys\n"
        "from runtime import ehr\n"
        "from tasks.fhir.chart import Chart\n"
        'chart = Chart.open({\'Patient.ndjson\': b\'{"resourceType":"Patient","id":"a"}\\n\'})\n'
        "import http.client, urllib.parse\n"
        "def status(url):\n"
        "    parts = urllib.parse.urlsplit(url)\n"
        "    c = http.client.HTTPConnection('127.0.0.1', parts.port, timeout=30)\n"
        "    c.request('GET', parts.path + '/Patient/a')\n"
        "    return c.getresponse().status\n"
        "with ehr.open(chart) as parent:\n"
        "    assert status(parent.base_url) == 200\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        with ehr.open(chart) as own:\n"
        "            same = own.base_url.split('/s/')[0] == parent.base_url.split('/s/')[0]\n"
        "            os._exit(1 if same else 0 if status(own.base_url) == 200 else 2)\n"
        "    code = os.waitpid(child, 0)[1]\n"
        "    assert status(parent.base_url) == 200\n"
        "sys.exit(os.waitstatus_to_exitcode(code))\n"
    )
    # Python 3.12 and later warn of any fork beside threads, which is what is tried here.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_opening_a_session_starts_no_server() -> None:
    script = (
        "import sys\n"
        "from runtime import ehr\n"
        "from tasks.fhir.chart import Chart\n"
        'chart = Chart.open({\'Patient.ndjson\': b\'{"resourceType":"Patient","id":"a"}\\n\'})\n'
        "with ehr.open(chart) as session:\n"
        "    assert session.search('Patient', []).total == 1\n"
        "assert 'uvicorn' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_with_a_server_ends_at_once_and_in_silence(chart_files: dict[str, bytes], tmp_path: Path) -> None:
    for name, data in chart_files.items():
        (tmp_path / name).write_bytes(data)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from runtime import ehr\n"
        "from tasks.fhir.chart import Chart\n"
        "session = ehr.open(Chart.open(Path(sys.argv[1])))\n"
        "print(session.request('GET', 'Patient/p1').status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


@pytest.fixture
def running() -> Any:
    """Starts `ehr serve`; whatever is still running at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        program = "from runtime.ehr.commands import ehr_app; ehr_app()"
        process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_serve_prints_a_base_url_and_serves_until_it_is_stopped(
    running: Start,
    connect: Callable[[str], Client],
    chart_files: dict[str, bytes],
    tmp_path: Path,
    order: Any,
    signal: str,
) -> None:
    import signal as signals

    for name, data in chart_files.items():
        (tmp_path / name).write_bytes(data)
    process = running(str(tmp_path))
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    client = connect(url)
    assert client.search("Observation?code=29463-7")["total"] == 45
    assert client.create(order).status == 201
    client.close()
    os.kill(process.pid, getattr(signals, signal))
    _, printed = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "58 resources" in printed
    assert "Traceback" not in printed
    assert not list(tmp_path.glob("ServiceRequest*"))


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("place", "query", "total"),
    [
        ("fhir-synthea/bundle-02.json.gz", "Observation?patient=d88f994a-5efa-421d-9c40-5f116d2114a6", 54),
        ("hapi-answers/edge.ndjson", "Condition", 12),
        ("hapi-answers/synthea.ndjson.gz", "Patient", 1),
        ("hapi-answers", "Patient", 5),
    ],
)
def test_serve_takes_a_bundle_an_ndjson_file_and_a_folder(
    running: Start, connect: Callable[[str], Client], shared_data: Path, place: str, query: str, total: int
) -> None:
    process = running(str(shared_data / place), "--json")
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    client = connect(said["base_url"])
    assert client.search(query)["total"] == total
    client.close()


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("missing.ndjson", None, 2),
        ("notes.txt", b"hello", 2),
        ("list.json", b"[]", 1),
        ("broken.json", b"{", 1),
        ("broken.json.gz", b"not gzip", 1),
    ],
)
def test_serve_says_in_one_line_what_is_wrong_with_a_chart(
    running: Start, tmp_path: Path, name: str, data: bytes | None, code: int
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    process = running(str(tmp_path / name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert len(err.strip().splitlines()) == 1
    assert name in err
