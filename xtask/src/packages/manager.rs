//! The package managers.

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
}

impl Manager {
    /// The commands that install packages, as a person types them after `sudo`.
    pub(super) fn steps(&self, names: &str) -> Vec<String> {
        let install = format!("{} {} {names}", self.program, self.install);
        self.update.map(|update| format!("{} {update}", self.program)).into_iter().chain([install]).collect()
    }
}

/// What most have in common.
const COMMON: Manager =
    Manager { program: "", as_root: true, update: None, install: "install -y", environment: &[], waiting_options: &[] };

pub(super) const MANAGERS: [Manager; 6] = [
    Manager {
        program: "apt-get",
        update: Some("update"),
        install: "install -y --no-install-recommends",
        environment: &["DEBIAN_FRONTEND=noninteractive"],
        // The lock of the package lists, which `update` takes, is not covered by the first option.
        waiting_options: &["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"],
        ..COMMON
    },
    // It waits by itself while another process installs.
    Manager { program: "dnf", ..COMMON },
    Manager { program: "pacman", install: "-Sy --noconfirm --needed", ..COMMON },
    Manager { program: "zypper", install: "--non-interactive install", environment: &["ZYPP_LOCK_TIMEOUT=600"], ..COMMON },
    Manager { program: "apk", install: "add --update-cache", waiting_options: &["--wait", "600"], ..COMMON },
    // It refuses to be run as root.
    Manager { program: "brew", as_root: false, install: "install", environment: &["NONINTERACTIVE=1"], ..COMMON },
];
