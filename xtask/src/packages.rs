//! What the system's package manager installs, where it may.

use anyhow::{Result, bail};

use crate::shell::{command, run, succeeds};
use crate::stages::Install;

/// A package manager and how it installs what is wanted.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) program: &'static str,
    /// What must have been run before, in a machine that is new.
    pub(crate) before: Option<&'static str>,
    pub(crate) install: &'static str,
}

/// Installs by the first of `managers` that is there, as root or by a `sudo` that asks nothing; gives back the command. Where it may not, the error is what to type.
pub(crate) fn install(missing: &str, wanted: &str, managers: &[Manager], install: Install) -> Result<&'static str> {
    let Some(manager) = managers.iter().find(|manager| succeeds(&mut command(&format!("{} --version", manager.program)))) else {
        bail!("{missing}; install {wanted}");
    };
    let prefix = if is_root() { Some("") } else { succeeds(&mut command("sudo -n true")).then_some("sudo -n ") };
    let steps = || manager.before.into_iter().chain([manager.install]);
    match prefix {
        Some(prefix) if install == Install::Allowed => {
            eprintln!("{missing}: installing {wanted}");
            for step in steps() {
                eprintln!("+ {prefix}{step}");
                let mut step = command(&format!("{prefix}{step}"));
                run(step.env("DEBIAN_FRONTEND", "noninteractive"))?;
            }
            Ok(manager.install)
        }
        _ => {
            let by_hand = steps().map(|step| format!("sudo {step}")).collect::<Vec<_>>().join(" && ");
            bail!("{missing}; run: {by_hand}");
        }
    }
}

fn is_root() -> bool {
    command("id -u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
