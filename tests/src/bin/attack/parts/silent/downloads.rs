//! Data sets that are downloaded from servers and addresses that are none.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use super::{Row, refused, row};

/// The bytes of the first file of MNIST.
const N_BYTES: u64 = 9_912_422;

/// The first byte that a request asks for.
fn requested(stream: &TcpStream) -> io::Result<Option<u64>> {
    let mut start = None;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        start = line.strip_prefix("range: bytes=").and_then(|range| range.trim_end_matches('-').parse().ok()).or(start);
    }
    Ok(start)
}

/// Sends one byte of those that are asked for, and closes the connection.
fn one_byte(mut stream: TcpStream) -> io::Result<()> {
    let (status, range, start) = match requested(&stream)? {
        None => ("200 OK", String::new(), 0),
        Some(start) => ("206 Partial Content", format!("Content-Range: bytes {start}-{}/{N_BYTES}\r\n", N_BYTES - 1), start),
    };
    let length = N_BYTES - start;
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{range}Connection: close\r\n\r\nx")
}

/// Sends a page that says that there is no such file, with the status of success.
fn page(mut stream: TcpStream) -> io::Result<()> {
    requested(&stream)?;
    let page = "<html>no such file</html>";
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len())
}

fn no_file(mut stream: TcpStream) -> io::Result<()> {
    requested(&stream)?;
    write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// Sends as many bytes as the file has, which are others.
fn other_bytes(mut stream: TcpStream) -> io::Result<()> {
    requested(&stream)?;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {N_BYTES}\r\nConnection: close\r\n\r\n")?;
    io::copy(&mut io::Read::take(io::repeat(b'x'), N_BYTES), &mut stream).map(drop)
}

const FETCH: &str = "xtask fetch mnist --to data --only-download";

pub(super) fn rows() -> Vec<Row> {
    const FILE: &str = "train-images-idx3-ubyte.gz";
    let line = format!("{FETCH} --from {{server}}");
    let mut rows = vec![
        row("a server that sends one byte per connection", &[&line], refused(&[FILE, "5 times"])).served(one_byte),
        row("a server that sends a page for a file", &[&line], refused(&[FILE, "9912422"])).served(page),
        row("a server that has no such file", &[&line], refused(&[FILE, "404"])).served(no_file),
        row("a server that sends other bytes", &[&line], refused(&[FILE, "checksum|published"])).served(other_bytes),
        row("a file of another content where a download goes", &[&line], refused(&[FILE, "9912422"]))
            .file(&format!("data/{FILE}"), "junk")
            .served(no_file),
    ];
    for address in ["file:///tmp", "ftp://127.0.0.1/mnist", "/tmp"] {
        rows.push(row(
            format!("a download from {address}"),
            &[&format!("{FETCH} --from {address}")],
            refused(&[address, "http"]),
        ));
    }
    rows
}
