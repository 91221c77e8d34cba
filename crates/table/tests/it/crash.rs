//! A writer that is killed, or whose disk is full, leaves no part of a table, and two concurrent writers do not mix their rows.

use std::env;
use std::fs;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use brisk_table::{Error, Schema, ShardSize, ShardedTable, ShardedWriter, Table, TableWriter};

const DEST: &str = "BRISK_TABLE_TEST_DEST";
const FIRST_ROUND: &str = "BRISK_TABLE_TEST_FIRST_ROUND";
const N_ROWS: usize = 8 * 1024;

/// A kind of writer, which fills a table with the number of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Table,
    Shards,
}

impl Kind {
    fn of(dest: &Path) -> Self {
        if dest.extension().is_some() { Self::Table } else { Self::Shards }
    }

    /// Writes the number of the round, `n_times` 128 KiB of it.
    fn write(self, dest: &Path, round: u32, n_times: usize) -> Result<usize, Error> {
        let schema = Schema::shaped(&[16]);
        let (rows, labels) = (vec![round as f32; 16 * 2048], vec![round as f32; 2048]);
        match self {
            Self::Table => {
                let mut writer = TableWriter::create(dest, schema)?;
                (0..n_times).try_for_each(|_| writer.push(&rows, &labels))?;
                writer.finish()
            }
            Self::Shards => {
                let mut writer = ShardedWriter::create(dest, schema, ShardSize::Rows(3000.max(n_times * 1024)))?;
                (0..n_times).try_for_each(|_| writer.push(&rows, &labels))?;
                writer.finish()
            }
        }
    }

    /// The round of the table at `dest`; checks that the table is complete and of one round.
    fn read(self, dest: &Path) -> f32 {
        fn check(tables: &[&Table]) -> f32 {
            let values = |table: &&Table| table.rows::<f32>(0..table.n_rows()).unwrap().to_vec();
            let rows: Vec<f32> = tables.iter().flat_map(values).collect();
            assert_eq!(rows.len(), 16 * N_ROWS);
            assert!(rows.iter().all(|&x| x == rows[0]), "rows of two rounds are mixed");
            rows[0]
        }
        match self {
            Self::Table => {
                let table = Table::open(dest).unwrap();
                table.verify().unwrap();
                check(&[&table])
            }
            Self::Shards => {
                let table = ShardedTable::open(dest).unwrap();
                table.verify().unwrap();
                check(&(0..table.n_shards()).map(|shard| table.shard(shard).unwrap()).collect::<Vec<_>>())
            }
        }
    }
}

/// Not a test by itself: run in a process that the tests below kill. Prints which rounds are finished.
#[test]
fn child_that_writes_tables() {
    let Some(dest) = env::var_os(DEST).map(PathBuf::from) else { return };
    let first: u32 = env::var(FIRST_ROUND).unwrap().parse().unwrap();
    for round in first.. {
        Kind::of(&dest).write(&dest, round, N_ROWS / 2048).unwrap();
        writeln!(std::io::stdout(), "finished {round}").unwrap();
    }
}

fn child(test: &str, dest: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads", "1", "--nocapture"]).env(DEST, dest).stderr(Stdio::null());
    command
}

/// Kills a writer that keeps overwriting its table, at 100 moments, and checks that the last finished table, or the one after it,
/// is complete. On a busy machine there are more and later moments, until enough tables were finished between them.
fn kill_and_look(kind: Kind) {
    let (folder, table) = crate::scratch();
    let dest = if kind == Kind::Table { table } else { folder.path().join("shards") };
    let mut random = 0x9e37_79b9_u64;
    let mut finished = 0;
    for turn in 0..1000 {
        if turn >= 100 && finished > 20 {
            break;
        }
        let mut command = child("crash::child_that_writes_tables", &dest);
        let mut writer = command.env(FIRST_ROUND, (finished + 1).to_string()).stdout(Stdio::piped()).spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A round takes a few milliseconds, and so does starting a process.
        thread::sleep(Duration::from_micros(3000 + random % 40_000_000 / 1000) * (1 + turn / 100));
        writer.kill().unwrap();
        let mut said = String::new();
        writer.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        writer.wait().unwrap();
        // The test harness leaves a line open before the first one.
        let last = said.lines().filter_map(|line| line.split_once("finished ")?.1.parse().ok()).max();
        let before = finished;
        finished = last.unwrap_or(finished);
        let is_there = if kind == Kind::Table { dest.exists() } else { dest.join("table.safetensors.index.json").exists() };
        if !is_there {
            assert_eq!(finished, 0, "a table that was finished is gone");
            continue;
        }
        let found = kind.read(&dest) as u32;
        assert!((finished..=finished + 1).contains(&found), "round {found} is there, {finished} was finished, {before} before");
        finished = found;
    }
    assert!(finished > 20, "only {finished} tables were finished: the writers were killed too soon to tell anything");
    if kind == Kind::Shards {
        // The next writer to finish removes what the killed writers left.
        kind.write(&dest, 1, N_ROWS / 2048).unwrap();
        let n_shards = ShardedTable::open(&dest).unwrap().n_shards();
        assert_eq!(fs::read_dir(&dest).unwrap().count(), n_shards + 1, "the killed writers' files are still there");
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_table() {
    kill_and_look(Kind::Table);
}

#[test]
fn a_killed_writer_of_shards_leaves_a_whole_table() {
    kill_and_look(Kind::Shards);
}

/// Not a test by itself: starts a table, with labels that do not fit in memory, and is killed before it can finish.
#[test]
fn child_that_never_finishes() {
    let Some(dest) = env::var_os(DEST).map(PathBuf::from) else { return };
    let mut writer = TableWriter::create(&dest, Schema::shaped(&[1])).unwrap();
    writeln!(std::io::stdout(), "started").unwrap();
    let values = vec![1.0_f32; 64 * 1024];
    for _ in 0..40 {
        writer.push(&values, &values).unwrap();
    }
    thread::sleep(Duration::from_secs(600));
}

/// Killed writers would fill the disk if each left a file that no other writer removes.
#[test]
fn what_killed_writers_leave_is_removed_by_the_next() {
    let (folder, dest) = crate::scratch();
    let n_hidden = || fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path() != dest).count();
    let mut most = 0;
    for turn in 0..20 {
        let mut writer = child("crash::child_that_never_finishes", &dest).stdout(Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufReader::new(writer.stdout.take().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line.contains("started")), "the writer ended before it started");
        thread::sleep(Duration::from_millis(turn * 5));
        writer.kill().unwrap();
        writer.wait().unwrap();
        most = most.max(n_hidden());
        assert!(n_hidden() <= 1, "{} hidden files after {} killed writers", n_hidden(), turn + 1);
    }
    assert_eq!(most, 1, "no killed writer had begun its file");
    Kind::Table.write(&dest, 1, N_ROWS / 2048).unwrap();
    assert_eq!(n_hidden(), 0, "killed writers' files are still there");
}

/// Not a test by itself: writes more than the limit allows, and prints the result.
#[test]
fn child_whose_disk_is_full() {
    let Some(dest) = env::var_os(DEST).map(PathBuf::from) else { return };
    let error = Kind::of(&dest).write(&dest, 1, 64).expect_err("there was room for the table");
    assert!(matches!(error, Error::Write { .. }), "{error:?}");
    fs::write(dest.with_file_name("message"), error.to_string()).unwrap();
}

/// A limit on the length of files replaces the full disk: it also fails in the middle of a write, and needs no privileges.
#[test]
#[cfg(unix)]
fn a_full_disk_is_one_clear_error() {
    for kind in [Kind::Table, Kind::Shards] {
        let (folder, table) = crate::scratch();
        let dest = if kind == Kind::Table { table } else { folder.path().join("shards") };
        kind.write(&dest, 7, N_ROWS / 2048).unwrap();
        let in_dest = || if dest.is_dir() { fs::read_dir(&dest).unwrap().count() } else { 1 };
        let before = in_dest();
        // The shell counts in blocks of 512 or 1024 bytes, so the limit is 0.5 or 1 MiB. Without the trap the signal would end
        // the process.
        let status = Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; ulimit -f 1024; exec "$0" --exact crash::child_whose_disk_is_full"#])
            .arg(env::current_exe().unwrap())
            .env(DEST, &dest)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "the child failed: {status}");
        let message = fs::read_to_string(dest.with_file_name("message")).unwrap();
        for part in [".safetensors: writing failed after", "nothing was left behind", "make room"] {
            assert!(message.contains(part), "`{message}` does not say `{part}`");
        }
        assert_eq!(kind.read(&dest), 7.0, "the old table changed");
        assert_eq!((fs::read_dir(folder.path()).unwrap().count(), in_dest()), (2, before), "something was left behind");
    }
}

/// Both finish, and the result is the complete table of one of the two; they share no files while they write.
#[test]
fn of_two_writers_at_one_path_the_last_wins() {
    for kind in [Kind::Table, Kind::Shards] {
        let (folder, table) = crate::scratch();
        let dest = if kind == Kind::Table { table } else { folder.path().join("shards") };
        for _ in 0..5 {
            thread::scope(|scope| {
                for round in [1, 2] {
                    let dest = &dest;
                    scope.spawn(move || kind.write(dest, round, N_ROWS / 2048).unwrap());
                }
            });
            assert!([1.0, 2.0].contains(&kind.read(&dest)));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
        if kind == Kind::Shards {
            let n_shards = ShardedTable::open(&dest).unwrap().n_shards();
            assert_eq!(fs::read_dir(&dest).unwrap().count(), n_shards + 1, "shards of the first are still there");
        }
    }
}
