//! rclone, as a server of S3.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::installed::{Installed, SERVERS, installed};

/// Serves the objects of the bucket `bucket`.
pub(crate) struct Rclone {
    server: Installed,
    program: &'static str,
}

pub(crate) const KEY: (&str, &str) = ("key", "s3cret");

impl Rclone {
    /// The program, in the PATH, or where `cargo xtask test` installs it; `None`, after a message, if it is in neither.
    pub(crate) fn program(what: &str) -> Option<&'static str> {
        let programs = ["rclone", concat!(env!("CARGO_TARGET_TMPDIR"), "/../rclone/bin/rclone")];
        // Older versions serve no S3.
        installed(&programs, &["serve", "s3", "--help"], "--auth-key", SERVERS, what)
    }

    /// `None`, after a message, if it is not installed.
    pub(crate) fn start(what: &str) -> Option<Self> {
        let program = Self::program(what)?;
        Some(Self { server: Installed::start(|folder, address| serving(program, KEY, folder, address)), program })
    }

    /// Accepts only another key from now on.
    pub(crate) fn change_key(&mut self, key: (&str, &str)) {
        self.server.restart(|folder, address| serving(self.program, key, folder, address));
    }

    /// The settings by which a program finds it, as environment variables.
    pub(crate) fn settings(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.server.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.0.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", KEY.1.to_owned()),
            ("AWS_REGION", "here".to_owned()),
        ]
    }

    /// The file in which an object of the bucket is stored.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.server.folder.path().join("objects/bucket").join(name)
    }

    /// The names of the objects in a folder of the bucket, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.file(folder)).into_iter().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn serving(program: &str, (id, secret): (&str, &str), folder: &Path, address: &str) -> Command {
    std::fs::create_dir_all(folder.join("objects/bucket")).unwrap();
    let mut command = Command::new(program);
    command.args(["serve", "s3", "--addr", address, "--auth-key", &format!("{id},{secret}")]);
    command.arg("--config").arg(folder.join("config")).arg(folder.join("objects"));
    command
}
