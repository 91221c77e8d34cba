//! Unusual file names: not UTF-8, very long, with line breaks and control characters.

use std::ffi::{OsStr, OsString};
use std::fs;

use anyhow::{Context, Result};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::Names, weight: 0.0, prepare };

struct Names {
    training: Training,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("names-shared")?;
    Prepared::ready(Names { training: Training::prepare(attack, &dir, 200, 1)? })
}

/// The names, without an ending.
fn names() -> Vec<(&'static str, OsString)> {
    let mut names: Vec<(&str, OsString)> = vec![
        ("a space", "a b".into()),
        ("a line break", "a\nb".into()),
        ("an escape character", "a\u{1b}[31mb".into()),
        ("quotes", "a'b\"c`d".into()),
        ("a leading dash, below `./`", "./-a".into()),
        ("an equals sign", "a=b".into()),
        ("letters beyond ASCII", "größe-🦀".into()),
        ("many dots", "...a..b".into()),
        ("240 bytes", "n".repeat(240).into()),
    ];
    #[cfg(unix)]
    names.extend([
        ("bytes that are not UTF-8", std::os::unix::ffi::OsStringExt::from_vec(b"a\xff\xfeb".to_vec())),
        ("only bytes that are not UTF-8", std::os::unix::ffi::OsStringExt::from_vec(vec![0xff, 0x80])),
    ]);
    names
}

fn with(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}

const PROGRAMS: [&str; 4] = ["import", "inspect", "higgs", "data_parallel"];

impl Cases for Names {
    fn n_listed(&self) -> u64 {
        (names().len() * PROGRAMS.len()) as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let names = names();
        let index = case.index as usize;
        let (what, name) = &names[index / PROGRAMS.len() % names.len()];
        let program = PROGRAMS[index % PROGRAMS.len()];
        let (csv, json) = (with(name, ".csv"), with(name, ".json"));
        let table = with(name, ".safetensors");
        fs::copy(&self.training.train, case.dir.join(&csv)).context("cannot copy the rows")?;
        let run = case.program(program);
        let run = match program {
            "import" => run.arg(&csv).arg(&table).arg("--json").arg(&json),
            "inspect" => {
                let import = case.program("import").arg(&self.training.train).arg("plain.safetensors").start()?.wait()?;
                case.count();
                fs::rename(case.path("plain.safetensors"), case.dir.join(&table)).with_context(|| import.to_string())?;
                run.arg(&table).arg("--verify").arg("--json").arg(&json)
            }
            _ => {
                let run = run.arg("--train").arg(&csv).arg("--test").arg(&self.training.test).arg("--json").arg(&json);
                let run = run.args(["--epochs", "1", "--hidden", "8", "--data-dir"]).arg(with(name, "-data"));
                run.arg(if program == "higgs" { "--runs" } else { "--out" }).arg(with(name, "-run"))
            }
        };
        if let Some(ended) = case.succeed(run, &format!("{program} fails with a file name that has {what}"))? {
            let dir = case.dir.clone();
            if !what.contains("dots") {
                case.check_no_leftovers(&dir, &format!("{program} leaves files behind with a name that has {what}"), &ended);
            }
        }
        Ok(())
    }
}
