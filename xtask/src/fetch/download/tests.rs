//! Downloads from a server on this machine that misbehaves in a given way.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::super::checksum::Checksum;
use super::*;

const CONTENT: &[u8] = b"The quick brown fox jumps over the lazy dog";
const FILE: File =
    File { name: "fox.txt", n_bytes: CONTENT.len() as u64, checksum: Checksum::Md5("9e107d9d372bb6826bd81d3542a419d6") };

/// How the server answers a request.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// Sends the requested bytes.
    Good,
    /// Sends this many of the requested bytes and closes the connection.
    Cut(usize),
    /// Sends the whole file, whatever was requested.
    Whole,
    /// Sends the requested number of bytes, but of another file.
    Other,
    /// Sends the file from its first byte as if that had been requested.
    WrongRange,
    /// Sends a longer file.
    Longer,
    /// Sends this status.
    Status(u16),
}

/// A server that answers requests one after the other, and the requested ranges. The last answer is repeated.
struct Server {
    url: String,
    ranges: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/{}", listener.local_addr().expect("an address"), FILE.name);
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let (log, answers) = (Arc::clone(&ranges), answers.to_vec());
        // Ends with the process.
        thread::spawn(move || {
            for (i, stream) in listener.incoming().enumerate() {
                let answer = answers[i.min(answers.len() - 1)];
                // It is not an error of the server if the client has closed the connection.
                let _ = serve(&mut stream.expect("a connection"), answer, &log);
            }
        });
        Self { url, ranges }
    }

    fn ranges(&self) -> Vec<String> {
        self.ranges.lock().expect("no server panics").clone()
    }
}

fn serve(stream: &mut TcpStream, answer: Answer, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut start = None;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse::<usize>().ok();
        }
    }
    log.lock().expect("no server panics").push(start.map_or(String::new(), |start| start.to_string()));
    let mut reply = |status: &str, headers: &str, n_bytes: usize, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {n_bytes}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    };
    let rest = |start: usize| format!("Content-Range: bytes {start}-{}/{}\r\n", CONTENT.len() - 1, CONTENT.len());
    let body = &CONTENT[start.unwrap_or(0)..];
    match (answer, start) {
        (Answer::Status(status), _) => reply(&format!("{status} Status"), "", 0, &[]),
        (Answer::Good, None) | (Answer::Whole, _) => reply("200 OK", "", CONTENT.len(), CONTENT),
        (Answer::Good, Some(start)) => reply("206 Partial Content", &rest(start), body.len(), body),
        (Answer::Cut(n), None) => reply("200 OK", "", body.len(), &body[..n]),
        (Answer::Cut(n), Some(start)) => reply("206 Partial Content", &rest(start), body.len(), &body[..n]),
        (Answer::Other, _) => reply("200 OK", "", CONTENT.len(), &[b'x'; CONTENT.len()]),
        (Answer::WrongRange, _) => reply("206 Partial Content", &rest(0), CONTENT.len(), CONTENT),
        (Answer::Longer, _) => reply("200 OK", "", CONTENT.len() + 1, CONTENT),
    }
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn download(&self, url: &str) -> Result<String> {
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let client = Client { agent: config.build().into(), pause: Duration::from_millis(1), progress: 8 };
        let mut said = String::new();
        client.download(url, &FILE, self.dir.path(), &mut |line| said += &(line + "\n"))?;
        Ok(said)
    }

    /// The download succeeds after requests for these ranges, and leaves only the file.
    #[track_caller]
    fn succeed(&self, server: &Server, ranges: &[&str]) -> String {
        let said = self.download(&server.url).expect("it succeeds");
        assert_eq!(server.ranges(), ranges, "{said}");
        assert_eq!(fs::read(self.path(FILE.name)).expect("the file"), CONTENT);
        assert_eq!(fs::read_dir(self.dir.path()).expect("the folder").count(), 1, "nothing else is left");
        said
    }

    /// The download fails with an error that has all of `words`; `part` is what it leaves for the next attempt, and the file does
    /// not exist.
    #[track_caller]
    fn fail(&self, url: &str, words: &[&str], part: Option<&[u8]>) {
        let error = self.download(url).expect_err("it fails");
        let message = format!("{error:#}");
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
        assert!(!self.path(FILE.name).exists(), "{message}");
        assert_eq!(fs::read(self.path("fox.txt.part")).ok().as_deref(), part, "{message}");
    }
}

#[test]
fn a_file_is_downloaded_once() {
    let (place, server) = (Place::new(), Server::new(&[Answer::Good]));
    place.succeed(&server, &[""]);
    let said = place.succeed(&server, &[""]);
    assert!(said.contains("downloaded already"), "{said}");
    fs::write(place.path(FILE.name), "something else").expect("it can be written");
    let error = format!("{:#}", place.download(&server.url).expect_err("it is another file"));
    assert!(error.contains("remove it") && error.contains("14 bytes, expected 43"), "{error}");
}

#[test]
fn a_cut_connection_is_continued() {
    let server = Server::new(&[Answer::Cut(10), Answer::Cut(5), Answer::Status(503), Answer::Cut(0), Answer::Good]);
    let said = Place::new().succeed(&server, &["", "10", "15", "15", "15"]);
    assert!(said.contains("status 503; trying again"), "{said}");
}

#[test]
fn an_interrupted_program_continues() {
    let (place, server) = (Place::new(), Server::new(&[Answer::Good]));
    fs::write(place.path("fox.txt.part"), &CONTENT[..20]).expect("it can be written");
    place.succeed(&server, &["20"]);
    // An earlier download had all bytes, but ended before it renamed the file.
    let place = Place::new();
    fs::write(place.path("fox.txt.part"), CONTENT).expect("it can be written");
    place.succeed(&Server::new(&[Answer::Status(500)]), &[]);
}

#[test]
fn a_server_without_ranges_starts_again() {
    let said = Place::new().succeed(&Server::new(&[Answer::Cut(10), Answer::Whole]), &["", "10"]);
    assert!(said.contains("starting again"), "{said}");
    let server = Server::new(&[Answer::Cut(10), Answer::WrongRange, Answer::Good]);
    Place::new().succeed(&server, &["", "10", ""]);
    let server = Server::new(&[Answer::Cut(10), Answer::Status(416), Answer::Good]);
    Place::new().succeed(&server, &["", "10", ""]);
}

#[test]
fn a_part_that_is_too_long_is_replaced() {
    let (place, server) = (Place::new(), Server::new(&[Answer::Good]));
    fs::write(place.path("fox.txt.part"), [0; 100]).expect("it can be written");
    place.succeed(&server, &[""]);
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let server = Server::new(&[Answer::Other]);
    place_fails(&server, &["its MD5 checksum is", "expected 9e107d9d372bb6826bd81d3542a419d6", "`--from`"], None);
    // Nor does the beginning of another file.
    let place = Place::new();
    fs::write(place.path("fox.txt.part"), [b'x'; 20]).expect("it can be written");
    place.fail(&Server::new(&[Answer::Good]).url, &["MD5"], None);
}

#[test]
fn a_file_of_another_length_is_refused_before_it_is_read() {
    place_fails(&Server::new(&[Answer::Longer]), &["the file has 44 bytes, expected 43"], Some(b""));
}

#[test]
fn servers_that_have_no_file_or_do_not_answer() {
    place_fails(
        &Server::new(&[Answer::Status(404)]),
        &["fox.txt: there is no such file on the server (status 404", "`--from`"],
        Some(b""),
    );
    place_fails(&Server::new(&[Answer::Status(403)]), &["the server refuses (status 403"], Some(b""));
    let server = Server::new(&[Answer::Cut(10), Answer::Cut(0)]);
    place_fails(&server, &["the connection", "5 times in a row", "the same command continues"], Some(&CONTENT[..10]));
    // A byte per connection is no progress.
    place_fails(&Server::new(&[Answer::Cut(1)]), &["5 times in a row"], Some(&CONTENT[..5]));
    let place = Place::new();
    place.fail("file:///tmp/fox.txt", &["only http:// and https://", "copy"], None);
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    Place::new().fail(&format!("http://127.0.0.1:{port}/fox.txt"), &["refused", "5 times in a row"], Some(b""));
}

#[track_caller]
fn place_fails(server: &Server, words: &[&str], part: Option<&[u8]>) {
    Place::new().fail(&server.url, words, part);
}

/// `/dev/full` is always full; it exists on Linux.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_to_be_full() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/full", place.path("fox.txt.part")).expect("links can be made");
    let error = format!("{:#}", place.download(&Server::new(&[Answer::Good]).url).expect_err("there is no room"));
    assert!(error.contains("fox.txt.part: cannot be written; make room") && error.contains("No space left"), "{error}");
    assert!(!place.path(FILE.name).exists(), "{error}");
}

#[test]
fn one_process_at_a_time() {
    let (place, server) = (Place::new(), Server::new(&[Answer::Good]));
    let other = fs::File::create(place.path("fox.txt.part")).expect("it can be created");
    other.lock().expect("it can be locked");
    let error = place.download(&server.url).expect_err("it is locked").to_string();
    assert!(error.contains("another process is downloading this file"), "{error}");
    drop(other);
    place.succeed(&server, &[""]);
}
