//! A folder in which examples are started, as a user starts them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::example::built;

/// A new folder, which is removed at the end.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("the system has a folder for temporary files"))
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("there is room for a small file");
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).expect("it was written")).expect("it is JSON")
    }

    /// An example, which will run on the CPU in this folder.
    pub(crate) fn command(&self, example: &'static str, args: &[&str]) -> Command {
        let mut command = Command::new(built(example));
        // Without the second one, the Vulkan loader prints an `error:` line.
        command.args(args).env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", self.0.path()).current_dir(self.0.path());
        command
    }

    /// Runs an example; also returns what it writes to standard error.
    pub(crate) fn run(&self, example: &'static str, args: &[&str]) -> (Output, String) {
        let output = self.command(example, args).output().expect("the example runs");
        let stderr = String::from_utf8(output.stderr.clone()).expect("messages are UTF-8");
        (output, stderr)
    }

    /// Runs an example and returns its results.
    #[track_caller]
    pub(crate) fn succeed(&self, example: &'static str, args: &[&str]) -> String {
        let (output, stderr) = self.run(example, args);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("results are UTF-8")
    }

    /// Checks that an example has no results and ends with an error whose line, the last, contains all of `words`; returns all
    /// lines.
    #[track_caller]
    pub(crate) fn refuse(&self, example: &'static str, args: &[&str], words: &[&str]) -> String {
        let (output, stderr) = self.run(example, args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{args:?}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && !stderr.contains("panicked"), "{args:?}: {stderr}");
        for word in words {
            assert!(last.contains(word), "{args:?}: no `{word}` in: {last}");
        }
        stderr
    }
}
