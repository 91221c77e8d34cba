//! Two hosts on one machine, by two_hosts.sh.
//!
//! `BRISK_TEST_MPI`: `auto` (the default) uses them where the machine allows them; `require`, the default if `CI` is set, fails
//! where it does not; `off` uses none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A command that runs the arguments appended to it on the first of two hosts, host0 and host1, for two minutes at most; `None`
/// where the machine does not allow it, which has been reported.
pub(crate) fn two_hosts() -> Option<Command> {
    static AS: OnceLock<Option<&[&str]>> = OnceLock::new();
    AS.get_or_init(find).map(on_two_hosts)
}

/// Root may create namespaces, and so may any user who is root in a user namespace.
const WAYS: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];

fn find() -> Option<&'static [&'static str]> {
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    let wish = std::env::var("BRISK_TEST_MPI").unwrap_or_else(|_| if is_ci { "require" } else { "auto" }.to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_MPI is `{wish}`, expected off, auto or require");
    let mut why = "BRISK_TEST_MPI=off".to_owned();
    for way in WAYS.iter().filter(|_| wish != "off") {
        match on_two_hosts(way).arg("true").output() {
            Ok(Output { status, .. }) if status.success() => return Some(way),
            Ok(output) => why = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => why = error.to_string(),
        }
    }
    assert!(
        wish != "require",
        "no two hosts on this machine, which BRISK_TEST_MPI=require or CI asks for: {why}; Debian's packages are iproute2 and util-linux"
    );
    // Written to standard error directly, since the test harness captures the output of passing tests.
    drop(writeln!(std::io::stderr(), "\nNO TEST RUNS ON TWO HOSTS: {why}"));
    None
}

fn on_two_hosts(way: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", "unshare"]).args(way);
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]).arg(script());
    command
}

/// The script next to this file, whichever package of the workspace is tested.
fn script() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut scripts = folders.map(|folder| folder.join("crates/replicate/tests/it/mpi/two_hosts.sh"));
    scripts.find(|script| script.exists()).expect("tests run in the workspace")
}
