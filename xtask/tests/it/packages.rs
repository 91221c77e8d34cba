//! Installing packages while other processes hold locks and servers cannot be reached, with a script as package manager.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// `apt-get`: writes down its arguments, then does what `SCRIPT` says for the n-th call. A driver exists once an installation has
/// succeeded.
const APT_GET: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit 0
cd 'FOLDER'
echo "$DEBIAN_FRONTEND $LC_ALL $*" >> calls
n=$(wc -l < calls)
done_by() { case "$*" in *" install "*) echo '{}' > lvp_icd.json ;; esac; exit 0; }
SCRIPT
done_by "$@"
"#;

/// As apt prints it.
const LISTS_LOCK: &str = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)";
const DPKG_LOCK: &str = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 78 (unattended-upgr)";
const NO_SERVER: &str = "W: Failed to fetch http://deb.debian.org/InRelease  Temporary failure resolving deb.debian.org";

const UPDATE: &str = "noninteractive C -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 update";
const INSTALL: &str = "noninteractive C -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 install -y --no-install-recommends mesa-vulkan-drivers libvulkan1";

/// A machine without a Vulkan adapter.
struct Machine(TempDir);

/// The result of `cargo xtask test --only adapter`.
struct Ended {
    status: Option<i32>,
    said: String,
    calls: Vec<String>,
}

impl Machine {
    fn new(script: &str) -> Self {
        let machine = Self(tempfile::tempdir().expect("a temporary folder"));
        let folder = machine.0.path().display().to_string();
        machine.program("apt-get", &APT_GET.replace("FOLDER", &folder).replace("SCRIPT", script));
        machine.program("id", "#!/bin/sh\necho 0\n");
        machine.program("ldconfig", "#!/bin/sh\necho libvulkan.so.1\n");
        machine
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path(name);
        fs::write(&path, script).expect("the folder can be written to");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its owner can change its mode");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, options: &[&str]) -> Ended {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask.args(["test", "--only", "adapter"]).args(options).env("PATH", path);
        xtask.env("VK_DRIVER_FILES", self.path("lvp_icd.json")).env_remove("DEBIAN_FRONTEND").env_remove("LC_ALL");
        let output = xtask.output().expect("xtask starts");
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        Ended {
            status: output.status.code(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
            calls: calls.lines().map(String::from).collect(),
        }
    }
}

#[track_caller]
fn check_waits(script: &str, expected_calls: &[&str], expected_words: &[&str]) {
    let ended = Machine::new(script).run(&[]);
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert_eq!(ended.calls, expected_calls, "{}", ended.said);
    for words in expected_words {
        assert!(ended.said.contains(words), "{words} in {}", ended.said);
    }
}

#[test]
fn packages_are_installed_without_questions() {
    check_waits("", &[UPDATE, INSTALL], &["no Vulkan adapter", "installing Mesa's software driver"]);
}

#[test]
fn a_lock_of_another_process_is_waited_for() {
    let script = format!(
        "[ $n = 1 ] && {{ echo '{LISTS_LOCK}' >&2; echo 'E: Unable to lock directory /var/lib/apt/lists/' >&2; exit 100; }}
        [ $n = 3 ] && {{ echo '{DPKG_LOCK}' >&2; exit 100; }}"
    );
    let words = ["waiting 1 s before trying again (9 more attempts)", DPKG_LOCK];
    check_waits(&script, &[UPDATE, UPDATE, INSTALL, UPDATE, INSTALL], &words);
}

/// `apt-get update` reports success if a list could not be fetched.
#[test]
fn a_server_that_cannot_be_reached_for_a_moment_is_tried_again() {
    let script = format!(
        "[ $n = 1 ] && {{ echo '{NO_SERVER}' >&2; exit 0; }}
        [ $n = 2 ] && {{ echo 'E: Unable to locate package mesa-vulkan-drivers' >&2; exit 100; }}"
    );
    check_waits(&script, &[UPDATE, INSTALL, UPDATE, INSTALL], &[NO_SERVER, "waiting 1 s before trying again"]);
}

#[test]
fn a_list_that_cannot_be_fetched_is_not_waited_for_if_the_package_is_in_another() {
    check_waits(&format!("[ $n = 1 ] && {{ echo '{NO_SERVER}' >&2; exit 0; }}"), &[UPDATE, INSTALL], &[NO_SERVER]);
}

#[test]
fn other_failures_end_at_once() {
    let machine = Machine::new("[ $n = 2 ] && { echo 'E: Unable to locate package mesa-vulkan-drivers' >&2; exit 100; }");
    let ended = machine.run(&[]);
    assert_eq!((ended.status, ended.calls), (Some(1), vec![UPDATE.to_owned(), INSTALL.to_owned()]), "{}", ended.said);
    assert!(
        !ended.said.contains("waiting") && ended.said.contains("mesa-vulkan-drivers libvulkan1` failed (exit status: 100)"),
        "{}",
        ended.said
    );
}

#[test]
fn nothing_is_installed_if_the_user_forbids_it() {
    let ended = Machine::new("").run(&["--no-install"]);
    assert_eq!((ended.status, ended.calls.len()), (Some(1), 0), "{}", ended.said);
    let by_hand = "run: sudo apt-get update && sudo apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1";
    assert!(ended.said.contains(by_hand), "{}", ended.said);
}

/// `sudo` clears the environment, and asks for a password unless `-n` forbids it.
#[test]
fn sudo_is_used_without_a_password_and_keeps_the_settings() {
    let machine = Machine::new("");
    machine.program("id", "#!/bin/sh\necho 1000\n");
    machine.program("sudo", "#!/bin/sh\n[ \"$1\" = -n ] || exit 1\nshift\nexec env -i PATH=\"$PATH\" \"$@\"\n");
    let ended = machine.run(&[]);
    assert_eq!((ended.status, ended.calls), (Some(0), vec![UPDATE.to_owned(), INSTALL.to_owned()]), "{}", ended.said);
}
