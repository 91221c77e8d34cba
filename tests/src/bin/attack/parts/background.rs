//! Programs started as in scripts: in the background, and with signals ignored.

use anyhow::Result;

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::run::Run;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::Background, weight: 0.0, prepare };

/// Ways in which scripts start programs: a description, and the shell's arguments.
const WAYS: [(&str, &[&str]); 5] = [
    ("in the background of a script", &["bash", "-c", r#""$0" "$@" & wait $!"#]),
    ("in the background of sh", &["sh", "-c", r#""$0" "$@" & wait $!"#]),
    ("with SIGINT ignored", &["sh", "-c", r#"trap '' INT; exec "$0" "$@""#]),
    ("with SIGHUP ignored, as nohup does", &["sh", "-c", r#"trap '' HUP; exec "$0" "$@""#]),
    ("with SIGINT, SIGTERM and SIGHUP ignored", &["sh", "-c", r#"trap '' INT TERM HUP; exec "$0" "$@""#]),
];

const PROGRAMS: [&str; 3] = ["import", "higgs", "data_parallel"];

struct Background {
    training: Training,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("background-shared")?;
    Prepared::ready(Background { training: Training::prepare(attack, &dir, 200, 1)? })
}

impl Background {
    fn program(&self, case: &Case<'_>, name: &str) -> Run {
        let run = case.program(name);
        match name {
            "import" => run.arg(&self.training.train).arg("out.safetensors"),
            "higgs" => self.training.options(run),
            _ => self.training.replicas(run),
        }
    }
}

impl Cases for Background {
    fn n_listed(&self) -> u64 {
        (WAYS.len() * PROGRAMS.len()) as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let index = case.index as usize;
        let ((way, shell), program) = (WAYS[index / PROGRAMS.len() % WAYS.len()], PROGRAMS[index % PROGRAMS.len()]);
        let run = self.program(case, program).by(shell);
        case.succeed(run, &format!("{program} fails {way}"))?;
        Ok(())
    }
}
