//! The package managers, and the messages by which each says that it has to wait.

use super::patience::Signs;

/// A package manager.
#[derive(Debug)]
pub(super) struct Manager {
    pub(super) program: &'static str,
    /// Whether it must be run as root.
    pub(super) as_root: bool,
    /// Updates the package lists of a new machine, where installing does not.
    pub(super) update: Option<&'static str>,
    /// Installs the packages whose names follow.
    pub(super) install: &'static str,
    /// Variables for running without questions: `NAME=value`.
    pub(super) environment: &'static [&'static str],
    /// Options that make it wait for its lock by itself.
    pub(super) waiting_options: &'static [&'static str],
    pub(super) signs: Signs,
}

impl Manager {
    /// The commands that install packages, as a person types them after `sudo`.
    pub(super) fn steps(&self, names: &str) -> Vec<String> {
        let install = format!("{} {} {names}", self.program, self.install);
        self.update.map(|update| format!("{} {update}", self.program)).into_iter().chain([install]).collect()
    }
}

pub(super) const MANAGERS: [Manager; 6] = [
    Manager {
        program: "apt-get",
        as_root: true,
        update: Some("update"),
        install: "install -y --no-install-recommends",
        environment: &["DEBIAN_FRONTEND=noninteractive"],
        // The lock of the package lists, which `update` takes, is not covered by the first option.
        waiting_options: &["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"],
        signs: Signs {
            locked: &["Could not get lock", "Unable to lock", "Unable to acquire the dpkg frontend lock"],
            unreachable: &[
                "Temporary failure resolving",
                "Could not resolve",
                "Could not connect",
                "Unable to connect",
                "Connection failed",
                "onnection timed out",
                "Network is unreachable",
                "Failed to fetch",
                "Unable to fetch some archives",
                "Hash Sum mismatch",
            ],
        },
    },
    Manager {
        program: "dnf",
        as_root: true,
        update: None,
        install: "install -y",
        environment: &[],
        // It waits by itself while another process installs.
        waiting_options: &[],
        signs: Signs {
            locked: &[
                "Failed to obtain the transaction lock",
                "Failed to obtain rpm transaction lock",
                "can't create transaction lock",
            ],
            unreachable: &[
                "Failed to download",
                "Cannot download",
                "Could not resolve host",
                "Couldn't resolve host",
                "Curl error",
                "Cannot prepare internal mirrorlist",
                "Librepo error",
            ],
        },
    },
    Manager {
        program: "pacman",
        as_root: true,
        update: None,
        install: "-Sy --noconfirm --needed",
        environment: &[],
        waiting_options: &[],
        signs: Signs {
            locked: &["unable to lock database", "could not lock database"],
            unreachable: &["failed retrieving file", "Could not resolve host", "failed to synchronize", "download library error"],
        },
    },
    Manager {
        program: "zypper",
        as_root: true,
        update: None,
        install: "--non-interactive install",
        environment: &["ZYPP_LOCK_TIMEOUT=600"],
        waiting_options: &[],
        signs: Signs {
            locked: &["System management is locked"],
            unreachable: &[
                "Could not resolve host",
                "Download (curl) error",
                "Connection failed",
                "Timeout exceeded",
                "Valid metadata not found",
                "Failed to retrieve new repository metadata",
            ],
        },
    },
    Manager {
        program: "apk",
        as_root: true,
        update: None,
        install: "add --update-cache",
        environment: &[],
        waiting_options: &["--wait", "600"],
        signs: Signs {
            locked: &["Unable to lock database"],
            unreachable: &["temporary error", "DNS", "network error", "network connection aborted", "connection timed out"],
        },
    },
    Manager {
        program: "brew",
        // It refuses to be run as root.
        as_root: false,
        update: None,
        install: "install",
        environment: &["NONINTERACTIVE=1"],
        waiting_options: &[],
        signs: Signs {
            locked: &["has already locked", "Another active Homebrew", "Another `brew"],
            unreachable: &["Failed to download", "Could not resolve host", "Failed to connect", "Connection timed out"],
        },
    },
];

/// How rustup says that it could not download something.
pub(crate) const RUSTUP: Signs = Signs {
    locked: &[],
    unreachable: &["could not download", "failed to download", "error sending request", "dns error", "timed out"],
};
