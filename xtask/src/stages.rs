//! A run of named stages: a heading each, the time, a table at the end.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// One thing to do; `act` fails with an error that says what to repeat.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) act: fn(&Options) -> Result<()>,
}

/// What the command line asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Stages to run; all when empty.
    pub(crate) only: Vec<String>,
    /// Whether something that is missing may be installed.
    pub(crate) install: Install,
}

/// Whether something that is missing may be installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Install {
    #[default]
    Allowed,
    Never,
}

impl Options {
    pub(crate) fn parse(args: &[String], stages: &[Stage]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--no-install" => options.install = Install::Never,
                "--only" => {
                    let names = stages.iter().map(|stage| stage.name).collect::<Vec<_>>().join(", ");
                    let Some(name) = args.next() else { bail!("--only needs a stage: {names}") };
                    if !stages.iter().any(|stage| stage.name == name) {
                        bail!("there is no stage `{name}`; there are {names}");
                    }
                    options.only.push(name.clone());
                }
                other => bail!("there is no option `{other}`; `--help` lists what there is"),
            }
        }
        Ok(options)
    }
}

/// Runs what `options` asks for; the first failure ends it.
pub(crate) fn run(stages: &[Stage], options: &Options) -> ExitCode {
    let begin = Instant::now();
    let mut table = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for stage in stages.iter().filter(|stage| options.only.is_empty() || options.only.iter().any(|name| name == stage.name)) {
        eprintln!("\n== {} ({} in)", stage.name, clock(begin.elapsed()));
        let start = Instant::now();
        let result = (stage.act)(options);
        table.push((stage.name, start.elapsed(), result.is_ok()));
        if let Err(error) = result {
            eprintln!("\nstage `{}` failed: {error:#}", stage.name);
            eprintln!("this stage alone: cargo xtask test --only {}", stage.name);
            code = ExitCode::FAILURE;
            break;
        }
    }
    println!("\n{}", summary(&table, begin.elapsed()));
    code
}

fn summary(table: &[(&str, Duration, bool)], total: Duration) -> String {
    let mut text = String::new();
    for (name, time, passed) in table {
        writeln!(text, "{name:<12} {:>8.1} s  {}", time.as_secs_f64(), if *passed { "ok" } else { "FAILED" })
            .expect("a String takes any text");
    }
    write!(text, "{:<12} {:>8.1} s", "total", total.as_secs_f64()).expect("a String takes any text");
    text
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 2] = [Stage { name: "first", act: |_| Ok(()) }, Stage { name: "second", act: |_| bail!("broken") }];

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>(), &STAGES)
    }

    #[track_caller]
    fn check_error(line: &str, part: &str) {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn options_are_read() {
        assert_eq!(parse("").expect("nothing is fine"), Options::default());
        let expected = Options { only: vec!["second".into(), "first".into()], install: Install::Never };
        assert_eq!(parse("--only second --no-install --only first").expect("all are known"), expected);
    }

    #[test]
    fn unknown_options_are_errors_that_list_what_there_is() {
        check_error("--only third", "there is no stage `third`; there are first, second");
        check_error("--only", "--only needs a stage: first, second");
        check_error("--fast", "there is no option `--fast`");
    }

    #[test]
    fn a_failing_stage_fails_the_run_and_only_skips_it_when_asked() {
        assert_eq!(run(&STAGES, &Options::default()), ExitCode::FAILURE);
        assert_eq!(run(&STAGES, &parse("--only first").expect("a known stage")), ExitCode::SUCCESS);
    }

    #[test]
    fn the_table_has_a_line_a_stage() {
        let table = [("fmt", Duration::from_millis(1250), true), ("tests", Duration::from_secs(61), false)];
        let expected = "fmt               1.2 s  ok\ntests            61.0 s  FAILED\ntotal            62.2 s";
        assert_eq!(summary(&table, Duration::from_millis(62_250)), expected);
    }
}
