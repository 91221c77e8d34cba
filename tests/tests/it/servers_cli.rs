//! Examples that read from servers, called from the command line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use crate::place::Place;

/// The URL of a server that answers each request with the next of these status lines and headers, and with the last one from then on.
fn serving(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("the example connects");
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let answer = answers[n.min(answers.len() - 1)];
            write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("the example reads it");
        }
    });
    format!("http://{address}/t.safetensors")
}

#[test]
fn a_long_wait_for_a_server_is_told_once() {
    let place = Place::new();
    let url = serving(&["503 Busy\r\nRetry-After: 3", "503 Busy", "404 Not Found"]);
    let stderr = place.refuse("inspect", &[&url, "--retry-seconds", "9"], &["t.safetensors", "no such object"]);
    let told: Vec<&str> = stderr.lines().filter(|line| line.contains("trying again")).collect();
    assert_eq!(told.len(), 1, "{stderr}");
    assert!([url.as_str(), "503", "9 s"].iter().all(|word| told[0].contains(word)), "{stderr}");
    let url = serving(&["503 Busy", "404 Not Found"]);
    let stderr = place.refuse("inspect", &[&url], &["no such object"]);
    assert!(!stderr.contains("trying again"), "a short wait is not told: {stderr}");
}

#[test]
fn the_option_of_retries_is_used_or_refused() {
    let place = Place::new();
    let url = serving(&["503 Busy"]);
    place.refuse("inspect", &[&url, "--retry-seconds", "0"], &["1 attempt", "503", "`--retry-seconds`"]);
    place.write("rows.csv", "x,y\n1,0\n");
    place.refuse("import", &["rows.csv", "t.safetensors", "--retry-seconds", "5"], &["--retry-seconds", "URL"]);
    place.refuse("higgs", &["--retry-seconds", "5"], &["--retry-seconds", "URL"]);
}

#[test]
fn a_scheme_without_slashes_is_no_file() {
    let place = Place::new();
    place.refuse("inspect", &["s3:bucket/t.safetensors"], &["s3://bucket/t.safetensors was probably meant"]);
    place.refuse("import", &["https:host/rows.csv", "t.safetensors"], &["https://host/rows.csv was probably meant"]);
    place.refuse("higgs", &["--train", "gs:b/x", "--test", "gs:b/y"], &["gs://b/x was probably meant"]);
    place.refuse("tabular", &["https:host/rows.csv"], &["https://host/rows.csv was probably meant"]);
    // Names of files, which do not exist.
    place.refuse("tabular", &["C:rows.csv"], &["C:rows.csv", "no such file"]);
    // A file with such a name is one.
    #[cfg(unix)]
    {
        place.write("s3:rows.csv", "x,y\n1,0\n");
        place.succeed("import", &["s3:rows.csv", "t.safetensors"]);
    }
}
