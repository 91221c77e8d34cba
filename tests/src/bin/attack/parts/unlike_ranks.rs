//! Ranks of one job whose rows differ.

use std::fs;

use anyhow::Result;
use fastrand::Rng;

use super::rank_kills::has_tool;
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::training::{Training, csv};

pub(crate) const PART: Part = Part { name: PartName::UnlikeRanks, weight: 0.0, prepare };

struct UnlikeRanks {
    training: Training,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("unlike-ranks-shared")?;
    if !has_tool(attack, &dir, "mpirun") {
        return Ok(Prepared::NotPossible("there is no mpirun".to_owned()));
    }
    let training = Training::prepare(attack, &dir, 400, 2)?;
    let run = training.ranks(attack.program("data_parallel", &dir)).replaced("--out", "ranks");
    let ended = run.by([attack.path_of("launch").as_os_str(), "-n".as_ref(), "2".as_ref()]).start()?.wait()?;
    if !ended.success() {
        let why = ended.stderr.lines().rfind(|line| line.starts_with("error:")).unwrap_or("no rank says why");
        return Ok(Prepared::NotPossible(format!("ranks cannot be started: {why}")));
    }
    Prepared::ready(UnlikeRanks { training })
}

/// Changes the text of a file of rows.
type Change = fn(&mut Rng, &str) -> String;

/// What differs on the second rank, the option that names the file, and how its text is changed.
const UNLIKE: [(&str, &str, Change); 6] = [
    ("other rows to train on", "--train", |rng, _| csv(rng, 400, 6)),
    ("inverted labels", "--train", |_, text| text.replace("\n0,", "\n2,").replace("\n1,", "\n0,").replace("\n2,", "\n1,")),
    ("one other digit", "--train", |_, text| text.replacen(".5", ".6", 1)),
    ("more rows to train on", "--train", |rng, text| {
        text.to_owned() + csv(rng, 7, 6).split_once('\n').map_or("", |(_, rows)| rows)
    }),
    ("other rows to test on", "--test", |rng, _| csv(rng, 200, 6)),
    ("another number of rows to test on", "--test", |rng, _| csv(rng, 180, 6)),
];

impl Cases for UnlikeRanks {
    fn n_listed(&self) -> u64 {
        UNLIKE.len() as u64
    }

    /// Two ranks whose rows differ are refused before the first step.
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let (what, option, change) = UNLIKE[case.index as usize % UNLIKE.len()];
        let path = if option == "--train" { &self.training.train } else { &self.training.test };
        fs::write(case.path("other.csv"), change(&mut case.rng, &fs::read_to_string(path)?))?;
        let rank = |data: &str| self.training.ranks(case.program("data_parallel")).replaced("--data-dir", data);
        let other = rank("data-1").replaced(option, "other.csv");
        let launch = case.attack.path_of("launch");
        // As mpirun reads it, a second program follows the colon.
        let run = rank("data-0").by([launch.as_os_str(), "-n".as_ref(), "1".as_ref()]).args([":", "-n", "1"]).args(other.words());
        let ended = run.start()?.wait()?;
        case.count();
        if ended.timed_out {
            case.find(Kind::Hang, format!("ranks do not end where one has {what}"), ended.to_string());
        } else if let Some(place) = ended.panic() {
            case.find(Kind::Panic, format!("a rank panics: {place}"), ended.to_string());
        } else if ended.stderr.contains("epoch 1/") {
            case.find(Kind::Wrong, format!("ranks train though one has {what}"), ended.to_string());
        } else {
            case.expect(!ended.success(), Kind::Wrong, &format!("ranks succeed though one has {what}"), &ended);
        }
        Ok(())
    }
}
