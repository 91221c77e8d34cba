//! A writer that is killed, or whose disk is full, leaves no half of a table.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brisk_table::{Error, Schema, Table, TableWriter};

const DEST: &str = "BRISK_TABLE_TEST_DEST";

/// Not a test of its own: what the tests below run in a process that they kill.
#[test]
fn child_that_writes_tables() {
    let Some(dest) = env::var_os(DEST).map(PathBuf::from) else { return };
    for round in 1.. {
        write_round(&dest, round).unwrap();
        fs::write(dest.with_file_name("rounds"), round.to_string()).unwrap();
    }
}

/// Not a test of its own: writes more than it may, and says what came of it.
#[test]
fn child_whose_disk_is_full() {
    let Some(dest) = env::var_os(DEST).map(PathBuf::from) else { return };
    let error = write_round(&dest, 1).expect_err("there was room for the table");
    assert!(matches!(error, Error::Write { .. }), "{error:?}");
    fs::write(dest.with_file_name("message"), error.to_string()).unwrap();
}

/// 4 MiB of the number of the round.
fn write_round(dest: &Path, round: u32) -> Result<usize, Error> {
    let mut writer = TableWriter::create(dest, Schema::shaped(&[16]))?;
    for _ in 0..64 {
        writer.push(&[round as f32; 16 * 1024], &[round as f32; 1024])?;
    }
    writer.finish()
}

fn child(test: &str, dest: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads", "1"]).env(DEST, dest).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_killed_writer_leaves_a_whole_table() {
    for round in 0..5 {
        let (folder, dest) = crate::scratch();
        let mut writer = child("crash::child_that_writes_tables", &dest).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !folder.path().join("rounds").exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Somewhere in the next table or the one after.
        std::thread::sleep(Duration::from_micros(1700 * round * round));
        writer.kill().unwrap();
        writer.wait().unwrap();

        let table = Table::open(&dest).unwrap();
        table.verify().unwrap();
        let rows = table.rows::<f32>(0..64 * 1024).unwrap();
        assert!(rows.iter().all(|&x| x == rows[0]), "rows of two rounds are mixed");
    }
}

/// The limit on the length of files stands in for the disk: it too fails in the midst of a write, and needs no privileges.
#[test]
#[cfg(unix)]
fn a_full_disk_is_one_clear_error() {
    let (folder, dest) = crate::scratch();
    crate::table::write_ramp(&dest, 10);
    let exe = env::current_exe().unwrap();
    // Blocks of 512 or 1024 bytes, as the shell has it: 0.5 or 1 MiB. Without the trap the signal would end the process.
    let status = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 1024; exec "$0" --exact crash::child_whose_disk_is_full"#])
        .arg(exe)
        .env(DEST, &dest)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "the child failed: {status}");
    let message = fs::read_to_string(dest.with_file_name("message")).unwrap();
    for part in ["table.safetensors: writing failed after", "nothing was left behind", "make room"] {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
    assert_eq!(Table::open(&dest).unwrap().n_rows(), 10, "the old table changed");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "something was left behind");
}
