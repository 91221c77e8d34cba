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
    pub(crate) systems: Systems,
    /// Fails with an error that says which command to repeat.
    pub(crate) act: fn(Install) -> Result<()>,
}

/// The systems that a stage runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Systems {
    All,
    /// What it needs exists, or is installed, only there, or it finds the same on any system.
    Linux,
}

/// Runs the stages whose names are in `only`, or all if it is empty, on `system`, as [`std::env::consts::OS`] names it; stops at
/// the first that fails. Those that do not run on the system are skipped.
pub(crate) fn run(stages: &[Stage], only: &[String], system: &str, install: Install) -> Result<()> {
    let begin = Instant::now();
    let mut table = Vec::new();
    for stage in stages.iter().filter(|stage| only.is_empty() || only.iter().any(|name| name == stage.name)) {
        eprintln!("\n== {} (at {})", stage.name, clock(begin.elapsed()));
        if stage.systems == Systems::Linux && system != "linux" {
            eprintln!("skipped: it runs only on Linux, and this is {system}");
            table.push((stage.name, Duration::ZERO, "skipped"));
            continue;
        }
        let start = Instant::now();
        let result = (stage.act)(install);
        table.push((stage.name, start.elapsed(), if result.is_ok() { "ok" } else { FAILED }));
        if let Err(error) = result {
            eprintln!("\nstage `{}` failed: {error:#}", stage.name);
            eprintln!("to repeat only this stage: cargo xtask test --only {}", stage.name);
            break;
        }
    }
    shell::print(format!("\n{}\n", summary(&table, begin.elapsed())).as_bytes())?;
    match table.last() {
        Some((name, _, FAILED)) => bail!("stage `{name}` failed"),
        _ => Ok(()),
    }
}

const FAILED: &str = "FAILED";

fn summary(table: &[(&str, Duration, &str)], total: Duration) -> String {
    let mut text = String::new();
    for (name, time, result) in table {
        writeln!(text, "{name:<12} {:>8.1} s  {result}", time.as_secs_f64()).expect("writing to a String does not fail");
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
        Stage { name: "first", about: "passes", systems: Systems::All, act: |_| Ok(()) },
        Stage { name: "second", about: "fails", systems: Systems::Linux, act: |_| bail!("broken") },
    ];

    #[test]
    fn a_failing_stage_fails_the_run_unless_it_is_not_selected() {
        let error = run(&STAGES, &[], "linux", Install::Never).expect_err("the second stage fails");
        assert_eq!(error.to_string(), "stage `second` failed");
        run(&STAGES, &["first".to_owned()], "linux", Install::Never).expect("the first stage passes");
    }

    #[test]
    fn a_stage_that_needs_linux_is_skipped_elsewhere() {
        run(&STAGES, &[], "macos", Install::Never).expect("the first stage passes, and the second does not run");
    }

    #[test]
    fn the_table_has_a_line_per_stage() {
        let table = [
            ("fmt", Duration::from_millis(1250), "ok"),
            ("cross", Duration::ZERO, "skipped"),
            ("tests", Duration::from_secs(61), FAILED),
        ];
        let expected = "fmt               1.2 s  ok\ncross             0.0 s  skipped\n\
                        tests            61.0 s  FAILED\ntotal            62.2 s";
        assert_eq!(summary(&table, Duration::from_millis(62_250)), expected);
    }
}
