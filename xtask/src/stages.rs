//! A sequence of named stages: a heading and the time of each, and a table at the end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::packages::Install;
use crate::shell;

/// A step of `cargo xtask test`.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// What it does, as `--help` prints it.
    pub(crate) about: &'static str,
    /// Fails with an error that says which command to repeat.
    pub(crate) act: fn(Install) -> Result<()>,
}

/// Runs the stages whose names are in `only`, or all if it is empty; stops at the first that fails.
pub(crate) fn run(stages: &[Stage], only: &[String], install: Install) -> Result<()> {
    let begin = Instant::now();
    let mut table = Vec::new();
    for stage in stages.iter().filter(|stage| only.is_empty() || only.iter().any(|name| name == stage.name)) {
        eprintln!("\n== {} (at {})", stage.name, clock(begin.elapsed()));
        let start = Instant::now();
        let result = (stage.act)(install);
        table.push((stage.name, start.elapsed(), result.is_ok()));
        if let Err(error) = result {
            eprintln!("\nstage `{}` failed: {error:#}", stage.name);
            eprintln!("to repeat only this stage: cargo xtask test --only {}", stage.name);
            break;
        }
    }
    shell::print(format!("\n{}\n", summary(&table, begin.elapsed())).as_bytes())?;
    match table.last() {
        Some((name, _, false)) => bail!("stage `{name}` failed"),
        _ => Ok(()),
    }
}

fn summary(table: &[(&str, Duration, bool)], total: Duration) -> String {
    let mut text = String::new();
    for (name, time, passed) in table {
        writeln!(text, "{name:<12} {:>8.1} s  {}", time.as_secs_f64(), if *passed { "ok" } else { "FAILED" })
            .expect("writing to a String does not fail");
    }
    write!(text, "{:<12} {:>8.1} s", "total", total.as_secs_f64()).expect("writing to a String does not fail");
    text
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 2] = [
        Stage { name: "first", about: "passes", act: |_| Ok(()) },
        Stage { name: "second", about: "fails", act: |_| bail!("broken") },
    ];

    #[test]
    fn a_failing_stage_fails_the_run_unless_it_is_not_selected() {
        let error = run(&STAGES, &[], Install::Never).expect_err("the second stage fails");
        assert_eq!(error.to_string(), "stage `second` failed");
        run(&STAGES, &["first".to_owned()], Install::Never).expect("the first stage passes");
    }

    #[test]
    fn the_table_has_a_line_per_stage() {
        let table = [("fmt", Duration::from_millis(1250), true), ("tests", Duration::from_secs(61), false)];
        let expected = "fmt               1.2 s  ok\ntests            61.0 s  FAILED\ntotal            62.2 s";
        assert_eq!(summary(&table, Duration::from_millis(62_250)), expected);
    }
}
