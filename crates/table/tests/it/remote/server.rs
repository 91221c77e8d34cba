//! A server of objects on this machine, which misbehaves on request: HTTP/1.1 with ranges, and the requests of S3 that tables
//! need.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// What goes wrong with an answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with these headers and this body.
    Status(u16, &'static str, &'static str),
    /// The connection ends in the middle of the body.
    Cut,
    /// One byte of the body is another.
    WrongByte,
    /// The body is a shorter range than requested, and says so.
    ShortRange,
    /// The range, with the status of a whole object.
    RangeWithoutStatus,
    /// The whole object instead of a range.
    WholeObject,
    /// A byte every 20 ms.
    Drip,
    /// No answer, ever.
    Silence,
}

/// The name by which an object is told apart from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Tag,
    WeakTag,
    /// Only the time of modification.
    Time,
    None,
}

/// A request, without its body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Request {
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| match pair.split_once('=') {
            Some((found, value)) if found == name => Some(value),
            None if pair == name => Some(""),
            _ => None,
        })
    }
}

type Plan = Box<dyn FnMut(&Request, usize) -> Option<Fault> + Send>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    objects: Mutex<BTreeMap<String, Stored>>,
    uploads: Mutex<BTreeMap<String, BTreeMap<usize, Vec<u8>>>>,
    log: Mutex<Vec<Request>>,
    plan: Mutex<Plan>,
    names: Mutex<Names>,
    /// When all objects were modified, in lists of objects.
    modified: Mutex<&'static str>,
    n_versions: AtomicU64,
    is_closed: AtomicBool,
    /// Bytes per second of all connections together, and when the link is free again.
    link: Mutex<Option<(f64, Instant)>>,
    latency: Mutex<Duration>,
}

#[derive(Clone)]
struct Stored {
    bytes: Arc<Vec<u8>>,
    version: u64,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State {
            objects: Mutex::default(),
            uploads: Mutex::default(),
            log: Mutex::default(),
            plan: Mutex::new(Box::new(|_, _| None)),
            names: Mutex::new(Names::Tag),
            modified: Mutex::new("2022-01-01T00:00:00Z"),
            n_versions: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            link: Mutex::new(None),
            latency: Mutex::new(Duration::ZERO),
        });
        let serving = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.is_closed.load(Ordering::Relaxed) {
                    return;
                }
                let state = serving.clone();
                thread::spawn(move || state.serve(stream));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stores an object at a path that starts with `/`.
    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
        self.put_shared(path, Arc::new(bytes));
    }

    pub(crate) fn put_shared(&self, path: &str, bytes: Arc<Vec<u8>>) {
        self.state.put(path, bytes);
    }

    pub(crate) fn names_of_objects(&self) -> Vec<String> {
        lock(&self.state.objects).keys().cloned().collect()
    }

    pub(crate) fn remove(&self, path: &str) {
        lock(&self.state.objects).remove(path);
    }

    /// `plan` says what goes wrong with a request, of which there were this many before.
    pub(crate) fn misbehave(&self, plan: impl FnMut(&Request, usize) -> Option<Fault> + Send + 'static) {
        *lock(&self.state.plan) = Box::new(plan);
        lock(&self.state.log).clear();
    }

    pub(crate) fn set_modified(&self, time: &'static str) {
        *lock(&self.state.modified) = time;
    }

    pub(crate) fn set_names(&self, names: Names) {
        *lock(&self.state.names) = names;
    }

    /// Limits the link, in bytes per second, and delays each answer.
    pub(crate) fn set_link(&self, bytes_per_s: f64, latency: Duration) {
        *lock(&self.state.link) = Some((bytes_per_s, Instant::now()));
        *lock(&self.state.latency) = latency;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        lock(&self.state.log).clone()
    }

    pub(crate) fn n_uploads(&self) -> usize {
        lock(&self.state.uploads).len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn put(&self, path: &str, bytes: Arc<Vec<u8>>) -> u64 {
        let version = self.n_versions.fetch_add(1, Ordering::Relaxed);
        lock(&self.objects).insert(path.to_owned(), Stored { bytes, version });
        version
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut stream = stream;
        loop {
            let (request, body) = read_request(&mut reader)?;
            if self.is_closed.load(Ordering::Relaxed) {
                return None;
            }
            let n_before = {
                let mut log = lock(&self.log);
                log.push(request.clone());
                log.len() - 1
            };
            let fault = (lock(&self.plan))(&request, n_before);
            // Copied first: other connections are delayed at the same time, not afterwards.
            let latency = *lock(&self.latency);
            thread::sleep(latency);
            match fault {
                Some(Fault::Silence) => loop {
                    thread::sleep(Duration::from_millis(20));
                    if self.is_closed.load(Ordering::Relaxed) {
                        return None;
                    }
                },
                Some(Fault::Status(status, headers, body)) => answer(&mut stream, status, headers, body.as_bytes())?,
                fault => self.respond(&mut stream, &request, body, fault)?,
            }
        }
    }

    fn respond(&self, stream: &mut TcpStream, request: &Request, body: Vec<u8>, fault: Option<Fault>) -> Option<()> {
        let upload = request.parameter("uploadId").map(str::to_owned);
        match (request.method.as_str(), upload) {
            ("GET", _) if request.parameter("list-type").is_some() => answer(stream, 200, "", self.list(request)?.as_bytes()),
            ("GET" | "HEAD", _) => self.get(stream, request, fault),
            ("PUT", Some(upload)) => {
                let part = request.parameter("partNumber")?.parse().ok()?;
                lock(&self.uploads).get_mut(&upload)?.insert(part, body);
                answer(stream, 200, &format!("ETag: \"part-{part}\"\r\n"), b"")
            }
            // Azure: blocks, and the list of those that the object consists of.
            ("PUT", None) if request.parameter("comp") == Some("block") => {
                let id = format!("{}?{}", request.path, request.parameter("blockid")?.replace("%3D", "="));
                lock(&self.uploads).insert(id, BTreeMap::from([(0, body)]));
                answer(stream, 201, "", b"")
            }
            ("PUT", None) if request.parameter("comp") == Some("blocklist") => {
                let list = String::from_utf8(body).ok()?;
                let ids = list
                    .split('<')
                    .filter_map(|element| element.split_once('>'))
                    .filter(|(name, id)| !name.starts_with('/') && !id.is_empty());
                let block = |(_, id): (&str, &str)| lock(&self.uploads).remove(&format!("{}?{id}", request.path));
                let bytes = ids.filter_map(block).flat_map(BTreeMap::into_values).flatten().collect();
                let version = self.put(&request.path, Arc::new(bytes));
                answer(stream, 201, &format!("ETag: \"{version}\"\r\n"), b"")
            }
            ("PUT", None) => {
                let version = self.put(&request.path, Arc::new(body));
                answer(stream, 200, &format!("ETag: \"{version}\"\r\n"), b"")
            }
            ("POST", None) if request.parameter("uploads").is_some() => {
                let id = self.n_versions.fetch_add(1, Ordering::Relaxed).to_string();
                lock(&self.uploads).insert(id.clone(), BTreeMap::new());
                let xml = format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                answer(stream, 200, "", xml.as_bytes())
            }
            ("POST", Some(upload)) => {
                let parts = lock(&self.uploads).remove(&upload)?;
                let version = self.put(&request.path, Arc::new(parts.into_values().flatten().collect()));
                let xml = format!("<CompleteMultipartUploadResult><ETag>\"{version}\"</ETag></CompleteMultipartUploadResult>");
                answer(stream, 200, "", xml.as_bytes())
            }
            ("DELETE", Some(upload)) => {
                lock(&self.uploads).remove(&upload);
                answer(stream, 204, "", b"")
            }
            ("DELETE", None) => {
                lock(&self.objects).remove(&request.path);
                answer(stream, 204, "", b"")
            }
            _ => answer(stream, 501, "", b""),
        }
    }

    /// The objects of a bucket whose names start like this.
    fn list(&self, request: &Request) -> Option<String> {
        let bucket = format!("{}/", request.path.trim_end_matches('/'));
        let prefix = request.parameter("prefix")?.replace("%2F", "/");
        let objects = lock(&self.objects);
        let keys = objects.iter().filter_map(|(path, stored)| Some((path.strip_prefix(&bucket)?, stored.bytes.len())));
        let (modified, mut xml) = (*lock(&self.modified), "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned());
        for (key, n_bytes) in keys.filter(|(key, _)| key.starts_with(&prefix)) {
            xml += &format!("<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><Size>{n_bytes}</Size></Contents>");
        }
        Some(xml + "</ListBucketResult>")
    }

    fn get(&self, stream: &mut TcpStream, request: &Request, fault: Option<Fault>) -> Option<()> {
        let stored = lock(&self.objects).get(&request.path).cloned();
        let Some(Stored { bytes, version }) = stored else {
            return answer(stream, 404, "", b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>");
        };
        let name = match *lock(&self.names) {
            // The stores of Google and Azure have both.
            Names::Tag => format!("ETag: \"{version}\"\r\nLast-Modified: Sat, 01 Jan 2022 00:00:00 GMT\r\n"),
            Names::WeakTag => format!("ETag: W/\"{version}\"\r\n"),
            Names::Time => format!("Last-Modified: Sat, 01 Jan 2022 00:00:{:02} GMT\r\n", version % 60),
            Names::None => String::new(),
        };
        if request.headers.get("if-match").is_some_and(|tag| *tag != format!("\"{version}\"")) {
            return answer(stream, 412, "", b"");
        }
        let total = bytes.len();
        let range = request.range().filter(|_| !matches!(fault, Some(Fault::WholeObject)));
        let Some((first, last)) = range else {
            let is_head = request.method == "HEAD";
            let body: &[u8] = if is_head { b"" } else { &bytes };
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n{name}\r\n").ok()?;
            return self.send(stream, body);
        };
        if first >= total {
            return answer(stream, 416, &format!("Content-Range: bytes */{total}\r\n"), b"");
        }
        let mut last = last.min(total - 1);
        if matches!(fault, Some(Fault::ShortRange)) {
            last = first + (last - first) / 2;
        }
        let mut body = bytes[first..=last].to_vec();
        if matches!(fault, Some(Fault::WrongByte)) {
            let middle = body.len() / 2;
            body[middle] ^= 1;
        }
        let length = body.len();
        if matches!(fault, Some(Fault::Drip)) {
            write!(stream, "HTTP/1.1 206 Partial Content\r\nContent-Length: {length}\r\n").ok()?;
            write!(stream, "Content-Range: bytes {first}-{last}/{total}\r\n{name}\r\n").ok()?;
            for byte in body {
                stream.write_all(&[byte]).ok()?;
                thread::sleep(Duration::from_millis(20));
            }
            return None;
        }
        let status = if matches!(fault, Some(Fault::RangeWithoutStatus)) { "200 OK" } else { "206 Partial Content" };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Range: bytes {first}-{last}/{total}\r\n{name}\r\n"
        )
        .ok()?;
        if matches!(fault, Some(Fault::Cut)) {
            self.send(stream, &body[..length / 2])?;
            return None;
        }
        self.send(stream, &body)
    }

    /// Sends a body at the speed of the link, which all connections share.
    fn send(&self, stream: &mut TcpStream, body: &[u8]) -> Option<()> {
        for piece in body.chunks(64 << 10) {
            let until = {
                let mut link = lock(&self.link);
                link.as_mut().map(|(bytes_per_s, free)| {
                    *free = (*free).max(Instant::now()) + Duration::from_secs_f64(piece.len() as f64 / *bytes_per_s);
                    *free
                })
            };
            stream.write_all(piece).ok()?;
            if let Some(until) = until {
                thread::sleep(until.saturating_duration_since(Instant::now()));
            }
        }
        Some(())
    }
}

fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> Option<()> {
    write!(stream, "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).ok()?;
    stream.write_all(body).ok()
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(Request, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        }
    }
    let n_bytes = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    if headers.get("expect").is_some_and(|word| word.contains("100")) {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body).ok()?;
    Some((Request { method, path: path.to_owned(), query: query.to_owned(), headers }, body))
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}
