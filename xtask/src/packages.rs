//! Installs missing packages with the system's package manager.

mod manager;
mod patience;

pub(crate) use patience::run_patiently;

use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use crate::shell::{command, succeeds};
use manager::{MANAGERS, Manager};

/// Whether something that is missing may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Install {
    Allowed,
    Never,
}

/// The option of commands that install what they need.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct InstallOptions {
    /// Never installs anything: fails with the command that would
    #[arg(long)]
    no_install: bool,
}

impl InstallOptions {
    pub(crate) fn get(self) -> Install {
        if self.no_install { Install::Never } else { Install::Allowed }
    }
}

/// Packages that provide one thing, under the names that package managers know them by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packages {
    /// What they provide, for messages.
    pub(crate) provides: &'static str,
    /// A package manager's program, and package names separated by spaces.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

/// Installs `packages` with the first known package manager that exists here, as root or with a `sudo` that asks for no password;
/// returns the command.
///
/// Waits while another process holds the package manager's lock, and retries while a package index cannot be reached.
///
/// # Errors
/// Where nothing may be installed, the error is `missing` and the command to type.
pub(crate) fn install(missing: &str, packages: &Packages, install: Install) -> Result<String> {
    let known = packages.names.iter().filter_map(|(program, names)| {
        let manager = MANAGERS.iter().find(|manager| manager.program == *program).expect("MANAGERS has every package manager");
        succeeds(&mut command(&format!("{program} --version"))).then_some((manager, *names))
    });
    let Some((manager, names)) = { known }.next() else {
        bail!("{missing}; install {}", packages.provides);
    };
    let user = if manager.as_root { User::with_root_rights() } else { Some(User::Current) };
    let steps = manager.steps(names);
    match user {
        Some(user) if install == Install::Allowed => {
            eprintln!("{missing}: installing {}", packages.provides);
            run_patiently(&mut steps.iter().map(|step| patient_command(manager, step, user)).collect::<Vec<_>>())?;
            Ok(steps.last().cloned().unwrap_or_default())
        }
        _ => {
            let sudo = if manager.as_root { "sudo " } else { "" };
            let by_hand = steps.iter().map(|step| format!("{sudo}{step}")).collect::<Vec<_>>().join(" && ");
            bail!("{missing}; run: {by_hand}");
        }
    }
}

/// Who runs the package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Current,
    /// Root, by `sudo -n`.
    Sudo,
}

impl User {
    /// `None` if the package manager cannot be run as root.
    fn with_root_rights() -> Option<Self> {
        let is_root = command("id -u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
        if is_root { Some(Self::Current) } else { succeeds(&mut command("sudo -n true")).then_some(Self::Sudo) }
    }
}

/// `step` as it is run: without questions, in English, and waiting for locks if the package manager can do so itself.
fn patient_command(manager: &Manager, step: &str, user: User) -> Command {
    let (program, words) = step.split_once(' ').unwrap_or((step, ""));
    // `sudo` clears the environment, so variables are set by `env`.
    let sudo = if user == User::Sudo { "sudo -n " } else { "" };
    let mut command = command(&format!("{sudo}env LC_ALL=C"));
    command.args(manager.environment).arg(program).args(manager.waiting_options).args(words.split_whitespace());
    command
}
