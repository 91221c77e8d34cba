//! Servers that others wrote, started for a test.
//!
//! `BRISK_TEST_SERVERS`: `auto` (the default) uses those that are installed, and says which are missing; `require` fails without
//! one. `BRISK_TEST_JOBS` says the same of programs that check job files.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server with a folder of its own; it ends with this value.
pub(crate) struct Installed {
    process: Child,
    pub(crate) address: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Installed {
    /// Starts the command for a folder and an address, and waits until it listens. Its messages are in the file `log` of the
    /// folder.
    pub(crate) fn start(command: impl FnOnce(&Path, &str) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().to_string();
        let process = listening(command(folder.path(), &address), &address, &folder.path().join("log"));
        Self { process, address, folder }
    }

    /// Ends it, and starts another command for the same folder and address.
    #[allow(dead_code, reason = "only rclone is started again, in tests of tables with S3")]
    pub(crate) fn restart(&mut self, command: impl FnOnce(&Path, &str) -> Command) {
        _ = self.process.kill();
        _ = self.process.wait();
        self.process = listening(command(self.folder.path(), &self.address), &self.address, &self.folder.path().join("log"));
    }
}

/// The process of a command, once it listens.
fn listening(mut command: Command, address: &str, log: &Path) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(log).unwrap());
    let mut process = command.spawn().unwrap();
    let since = Instant::now();
    while TcpStream::connect(address).is_err() {
        let said = || fs::read_to_string(log).unwrap_or_default();
        assert!(process.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(20), "{}", said());
        thread::sleep(Duration::from_millis(5));
    }
    process
}

impl Drop for Installed {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// An environment variable that says whether tests need programs, and the stage of `cargo xtask test` that installs them.
pub(crate) type Need = [&'static str; 2];

pub(crate) const SERVERS: Need = ["BRISK_TEST_SERVERS", "servers"];

/// The first of these programs that can be started with these arguments and then writes `word`. If there is none, says that
/// `what` does not run, or fails if it must.
pub(crate) fn installed<'a>(
    programs: &[&'a str],
    args: &[&str],
    word: &str,
    [variable, stage]: Need,
    what: &str,
) -> Option<&'a str> {
    let found = programs.iter().find(|program| {
        let output = Command::new(program).args(args).stdin(Stdio::null()).output();
        output.is_ok_and(|Output { stdout, stderr, .. }| {
            [stdout, stderr].iter().any(|said| String::from_utf8_lossy(said).contains(word))
        })
    });
    if found.is_none() {
        let why = format!("`{} {}` does not work; `cargo xtask test --only {stage}` installs it", programs[0], args.join(" "));
        let wish = std::env::var(variable).unwrap_or_else(|_| "auto".to_owned());
        assert!(["auto", "require"].contains(&wish.as_str()), "{variable} is `{wish}`, expected auto or require");
        assert!(wish == "auto", "{variable}=require, and {why}");
        // Bypasses the harness, which hides the output of `eprintln!` in a test that passes.
        _ = writeln!(std::io::stderr(), "NOT RUN: {what}: {why}");
    }
    found.copied()
}
