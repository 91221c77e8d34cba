//! Damaged and malicious files, given to every program that reads them.

mod crafted;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Cases, Part, Prepared, shard_kills};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::damage::damage;
use crate::files::Snapshot;
use crate::report::Kind;
use crate::run::Run;
use crate::training::{Training, csv};

pub(crate) const PART: Part = Part { name: PartName::HostileFiles, weight: 1.5, prepare };

/// A file; its extension says what it is.
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

struct Hostile {
    /// Valid files, then malicious ones.
    seeds: Vec<Seed>,
    /// How many of the seeds are valid.
    n_good: usize,
    training: Training,
    /// A folder of shards.
    shards: PathBuf,
    /// A run, to be resumed from a damaged checkpoint.
    run: PathBuf,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("hostile-shared")?;
    let training = Training::prepare(attack, &dir, 120, 1)?;
    let mut seeds = good(&training, attack, &dir)?;
    let n_good = seeds.len();
    seeds.extend(crafted::seeds());
    seeds.extend(attacks()?);
    let shards = dir.join("shards");
    shard_kills::write_small(&shards)?;
    Prepared::ready(Hostile { seeds, n_good, training, shards, run: dir.join("run") })
}

/// Files of the tests of `brisk-table`: malicious ones, and valid ones in packed formats.
fn attacks() -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for folder in ["attacks", "packed"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/table/tests").join(folder);
        let mut paths = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            paths.push(entry?.path());
        }
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            seeds.push(Seed { name, bytes: fs::read(path)? });
        }
    }
    Ok(seeds)
}

/// Valid files: text, packed text, arrays, tables.
fn good(training: &Training, attack: &Attack<'_>, dir: &Path) -> Result<Vec<Seed>> {
    let text = fs::read(&training.train)?;
    let mut mixed = "label,size,kind,weight\n".to_owned();
    for (i, kind) in ["red", "green", "\"a, b\"", ""].iter().cycle().take(60).enumerate() {
        mixed += &format!("{},{}.5,{kind},{}\n", ["yes", "no"][i % 2], i, 1 + i % 3);
    }
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(&text)?;
    let mut svmlight = String::new();
    for i in 0..50 {
        svmlight += &format!("{} 1:0.{i} 3:{}\n", i % 2, i * i);
    }
    let mut seeds = vec![
        Seed { name: "rows.csv".into(), bytes: text },
        Seed { name: "mixed.csv".into(), bytes: mixed.clone().into_bytes() },
        Seed { name: "rows.csv.gz".into(), bytes: gz.finish()? },
        Seed { name: "rows.svm".into(), bytes: svmlight.into_bytes() },
        Seed { name: "values.npy".into(), bytes: npy("<f4", "(40, 3)", 40 * 3 * 4) },
        Seed { name: "labelled.idx".into(), bytes: idx() },
        Seed { name: "batch.bin".into(), bytes: (0..3073_usize * 4).map(|i| if i % 3073 == 0 { 3 } else { i as u8 }).collect() },
    ];
    fs::write(dir.join("mixed.csv"), mixed)?;
    let train = training.train.to_string_lossy().into_owned();
    let tables: [(&str, &[&str]); 2] = [
        ("rows.safetensors", &[&train]),
        (
            "mixed.safetensors",
            &["mixed.csv", "--label-kind", "classes", "--categorical", "auto", "--weight", "weight", "--missing", "mean"],
        ),
    ];
    for (name, args) in tables {
        let ended = attack.program("import", dir).args([args[0], name]).args(&args[1..]).start()?.wait()?;
        if !ended.success() {
            bail!("an undisturbed import fails: {ended}");
        }
        seeds.push(Seed { name: name.into(), bytes: fs::read(dir.join(name))? });
    }
    Ok(seeds)
}

fn npy(dtype: &str, shape: &str, n_bytes: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat(127 - (10 + header.len()) % 64);
    header.truncate(117);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend((0..n_bytes).map(|i| if i % 4 == 3 { 0x3f } else { i as u8 }));
    bytes
}

fn idx() -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3];
    [30_u32, 4, 4].iter().for_each(|n| bytes.extend(n.to_be_bytes()));
    bytes.extend((0..30 * 16).map(|i| i as u8));
    bytes
}

/// Words that are inserted into files.
const TOKENS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"4294967296",
    b"18446744073709551615",
    b"9223372036854775808",
    b"1e999",
    b"nan",
    b"",
    b"\"U8\"",
    b"[",
    b"{}",
    b"\"\"",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x1b[31m",
    b",",
];

impl Cases for Hostile {
    /// Each malicious file unchanged; all others are damaged at random.
    fn n_listed(&self) -> u64 {
        (self.seeds.len() - self.n_good) as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        if let Some(seed) = self.seeds[self.n_good..].get(case.index as usize) {
            return self.read_all(case, seed);
        }
        match case.rng.u8(..10) {
            0 | 1 => self.checkpoint(case),
            2 => self.shards(case),
            3 => self.checked_table(case),
            _ => {
                // Damage to valid files gets further into a reader, so they are half of all.
                let of = if case.rng.bool() { &self.seeds[..self.n_good] } else { &self.seeds[self.n_good..] };
                let seed = &of[case.rng.usize(..of.len())];
                let seed = Seed { name: seed.name.clone(), bytes: damaged(case, &seed.bytes) };
                self.read_one(case, &seed)
            }
        }
    }
}

/// A damaged copy. Half of the time only the first 4 KiB are damaged, where most formats have their structure.
fn damaged(case: &mut Case<'_>, bytes: &[u8]) -> Vec<u8> {
    let rng = &mut case.rng;
    let n_front = if rng.bool() { bytes.len().min(4096) } else { bytes.len() };
    let mut copy = bytes[..n_front].to_vec();
    damage(&mut copy, &TOKENS, |n| rng.usize(..n));
    copy.extend_from_slice(&bytes[n_front..]);
    copy
}

impl Hostile {
    /// Every program that could read it.
    fn read_all(&self, case: &mut Case<'_>, seed: &Seed) -> Result<()> {
        for reader in 0..Self::n_readers(seed) {
            self.read(case, seed, reader)?;
        }
        Ok(())
    }

    fn read_one(&self, case: &mut Case<'_>, seed: &Seed) -> Result<()> {
        let reader = case.rng.usize(..Self::n_readers(seed));
        self.read(case, seed, reader)
    }

    fn n_readers(seed: &Seed) -> usize {
        if seed.name.ends_with(".safetensors") {
            6
        } else if seed.name.ends_with(".csv") {
            3
        } else {
            1
        }
    }

    fn read(&self, case: &mut Case<'_>, seed: &Seed, reader: usize) -> Result<()> {
        let name = &seed.name;
        fs::write(case.path(name), &seed.bytes).context("cannot write a hostile file")?;
        let import = |run: Run| run.arg(name).arg("out.safetensors");
        let is_table = name.ends_with(".safetensors");
        let train = |run: Run| self.training.options(run).replaced("--train", name).replaced("--epochs", "1");
        let run = match (is_table, reader) {
            (true, 0) => case.program("inspect").arg(name),
            (true, 1) => case.program("inspect").arg(name).args(["--verify", "--rows", "100000"]),
            (true, 2) => case.program("import").arg(&self.training.train).args(["out.safetensors", "--like", name]),
            (true, 3) => train(case.program("higgs")),
            (true, 4) => self.training.options(case.program("higgs")).replaced("--test", name),
            (true, _) => self.training.options(case.program("data_parallel")).args(["--resume", name]),
            (false, 0) => import(case.program("import")),
            (false, 1) => train(case.program("higgs")).args(["--label", "label"]),
            (false, _) => {
                let words = ["--label-kind", "classes", "--categorical", "auto", "--missing", "mean", "--on-bad-row", "skip"];
                import(case.program("import")).args(words)
            }
        };
        self.judge(case, run)
    }

    /// Reads, and checks that a refusal has written nothing.
    fn judge(&self, case: &mut Case<'_>, run: Run) -> Result<()> {
        let before = Snapshot::take(&case.dir);
        let ended = case.end(run.bounded())?;
        if ended.code() == Some(2) {
            let what = format!("{} takes a damaged file for a wrong option", ended.name);
            case.find(Kind::Wrong, what, ended.to_string());
        }
        // Training may have written to `data` and `runs` before it failed.
        let damaged = crate::files::damaged(&case.path("data"));
        let changes = before.changes(&Snapshot::take(&case.dir));
        let written: Vec<_> =
            changes.into_iter().filter(|change| !change.starts_with("data") && !change.starts_with("runs")).collect();
        if !ended.success() && !written.is_empty() {
            let what = format!("{} writes something though it refuses a file", ended.name);
            case.find(Kind::Loss, what, format!("{}\n{ended}", written.join(", ")));
        }
        if !damaged.is_empty() {
            case.find(Kind::Loss, format!("{} leaves a damaged file", ended.name), format!("{}\n{ended}", damaged.join(", ")));
        }
        Ok(())
    }

    /// A table with checksums, one bit of which has changed: `--verify` finds it.
    fn checked_table(&self, case: &mut Case<'_>) -> Result<()> {
        let tables: Vec<&Seed> = self.seeds[..self.n_good].iter().filter(|seed| seed.name.ends_with(".safetensors")).collect();
        let seed = tables[case.rng.usize(..tables.len())];
        let mut bytes = seed.bytes.clone();
        let (byte, bit) = (case.rng.usize(..bytes.len()), case.rng.u8(..8));
        bytes[byte] ^= 1 << bit;
        fs::write(case.path(&seed.name), &bytes)?;
        let run = case.program("inspect").args([&seed.name, "--verify"]);
        let ended = case.end(run.bounded())?;
        let what = "inspect --verify does not find a flipped bit";
        if ended.success() {
            case.find(Kind::Wrong, what, format!("byte {byte} of {}, bit {bit}\n{ended}", bytes.len()));
        }
        Ok(())
    }

    /// A folder of shards, with a damaged index or a damaged shard.
    fn shards(&self, case: &mut Case<'_>) -> Result<()> {
        let folder = case.path("shards");
        fs::create_dir(&folder)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.shards)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
            names.push(entry.file_name());
        }
        names.sort();
        let is_index = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".json");
        let name = if case.rng.bool() { names.iter().find(|name| is_index(name)) } else { case.rng.choice(&names) };
        let path = folder.join(name.context("a folder of shards has files")?);
        let bytes = fs::read(&path)?;
        fs::write(&path, damaged(case, &bytes))?;
        let run = case.program("inspect").arg("shards").args(["--verify", "--rows", "1000"]);
        self.judge(case, run)
    }

    /// A damaged checkpoint: `--resume FILE` refuses it, `--resume auto` skips it.
    fn checkpoint(&self, case: &mut Case<'_>) -> Result<()> {
        let run = case.path("run");
        fs::create_dir(&run)?;
        for entry in fs::read_dir(&self.run)? {
            let entry = entry?;
            fs::copy(entry.path(), run.join(entry.file_name()))?;
        }
        let last = run.join("last.safetensors");
        let good = fs::read(&last)?;
        let bytes = damaged(case, &good);
        fs::write(&last, &bytes)?;
        let run = self.training.options(case.program("data_parallel")).args(["--replicas", "2", "--epochs", "2"]);
        let is_auto = case.rng.bool();
        let words: &[&str] = if is_auto { &["--out", "run", "--resume", "auto"] } else { &["--resume", "run/last.safetensors"] };
        let ended = case.end(run.replaced("--epochs", "2").args(words).bounded())?;
        if ended.success() && !is_auto && bytes != good {
            case.find(Kind::Wrong, "a run is resumed from a damaged checkpoint", ended.to_string());
        } else if ended.code() == Some(1) && is_auto {
            case.find(Kind::Wrong, "`--resume auto` does not pass over a damaged checkpoint", ended.to_string());
        }
        Ok(())
    }
}

/// Text of some rows, for crafted files.
fn rows(n_rows: usize, n_cols: usize) -> String {
    csv(&mut fastrand::Rng::with_seed(1), n_rows, n_cols)
}
