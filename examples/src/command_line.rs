//! The command line of an example: parses its options, prints help and completions, and turns its result into an exit status.

mod device_option;
mod server_option;
pub mod value;

use std::any::TypeId;
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Parser, value_parser};
use clap_complete::Shell;

use crate::elsewhere::{say_what_was_read, stopped_by};
use crate::interruptible::StoppedImport;
use crate::print;

pub use device_option::DeviceOption;
pub use server_option::{CacheOptions, ServerOption};

/// The exit status of a wrong command line.
const USAGE_ERROR: u8 = 2;

const COMPLETIONS: &str = "completions";

/// Runs an example: parses its command line and passes the options to `program`.
///
/// The exit status is the one that `program` returns, 1 if it returns an error (that of the signal if the error is
/// [`StoppedImport`]), and 2 for a wrong command line. `--help` and `--completions SHELL` print to standard output.
pub fn run<O: Parser>(program: impl FnOnce(O) -> Result<ExitCode>) -> ExitCode {
    run_with_given(|options, _| program(options))
}

/// Like [`run`]; `program` is also told which options the command line gives, without those that have their defaults.
pub fn run_with_given<O: Parser>(program: impl FnOnce(O, &[Given]) -> Result<ExitCode>) -> ExitCode {
    run_command(O::command(), program)
}

/// Like [`run_with_given`], for a command line that `command` describes.
pub(crate) fn run_command<O: FromArgMatches>(
    command: Command,
    program: impl FnOnce(O, &[Given]) -> Result<ExitCode>,
) -> ExitCode {
    let outcome = match parse::<O>(with_common_options(command)) {
        Ok(Some((options, given))) => {
            if cfg!(debug_assertions) && std::io::stderr().is_terminal() {
                print::note("note: this is a debug build, in which training is many times slower; pass `--release` to cargo");
            }
            program(options, &given)
        }
        Ok(None) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    };
    let outcome = outcome.or_else(|error| match error.downcast_ref::<clap::Error>() {
        Some(error) => show(error),
        None => Err(error),
    });
    say_what_was_read();
    outcome.unwrap_or_else(|error| {
        print::error(&error);
        match stopped_by() {
            Some(signal) => ExitCode::from(signal.exit_status()),
            None => error.downcast_ref::<StoppedImport>().map_or(ExitCode::FAILURE, StoppedImport::exit_code),
        }
    })
}

/// An error in options that the parser accepts individually, which [`run`] prints as the parser prints its own errors.
pub fn usage_error<O: Parser>(kind: ErrorKind, message: impl std::fmt::Display) -> anyhow::Error {
    with_common_options(O::command()).error(kind, message).into()
}

/// The name of an option that the command line gives: `threads` for `--threads 2`.
pub type Given = String;

/// The options of this process, and the names of those that are given; `None` if completions were requested and printed.
fn parse<O: FromArgMatches>(mut command: Command) -> Result<Option<(O, Vec<Given>)>> {
    // Completions go with no other option, not even with one that a variable of the environment sets.
    if std::env::args_os().any(|arg| arg.to_string_lossy().starts_with("--completions")) {
        command = command.mut_args(|arg| arg.env(None::<&str>));
    }
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    if let Some(shell) = matches.get_one::<Shell>(COMPLETIONS) {
        let (mut script, name) = (Vec::new(), command.get_name().to_owned());
        clap_complete::generate(*shell, &mut command, name, &mut script);
        return print::result(String::from_utf8_lossy(&script).trim_end()).map(|()| None);
    }
    if let Some(option) = option_without_value(&command, &matches) {
        return Err(command
            .error(ErrorKind::InvalidValue, format!("a value is required for '{option}' but none was supplied"))
            .into());
    }
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given = command.get_arguments().filter(is_given).filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
    Ok(Some((O::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?, given)))
}

/// The first option whose value on the command line is empty, as when a script passes a variable that is not set.
fn option_without_value(command: &Command, matches: &ArgMatches) -> Option<String> {
    let is_empty = |id: &str| {
        matches.value_source(id) == Some(ValueSource::CommandLine)
            && matches.get_raw(id).is_some_and(|mut values| values.any(OsStr::is_empty))
    };
    // The arguments of another program are its own.
    let mut options = command.get_arguments().filter(|arg| !arg.is_trailing_var_arg_set());
    options.find(|arg| is_empty(arg.get_id().as_str())).map(ToString::to_string)
}

/// The options of `command`, and those of every example. If an option is given twice, the last value is used, so that a script
/// can append to its defaults; but a list of names, of which a part would be lost, is refused.
fn with_common_options(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
    let completions = Arg::new(COMPLETIONS)
        .long(COMPLETIONS)
        .value_name("SHELL")
        .value_parser(value_parser!(Shell))
        .exclusive(true)
        .help("Print completions of these options for a shell");
    command
        // Their value parsers say what is wrong with a negative number.
        .mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg })
        .mut_args(|arg| {
            if adds_up(&arg) {
                arg
            } else {
                let id = arg.get_id().clone();
                arg.overrides_with(id)
            }
        })
        .disable_help_flag(true)
        .max_term_width(120)
        .next_help_heading("Other")
        .args([completions, help])
}

/// Whether the option has several names, separated by commas, or may be repeated.
fn adds_up(arg: &Arg) -> bool {
    let value = arg.get_value_parser().type_id();
    let is_list = value == TypeId::of::<Vec<String>>();
    is_list || matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
}

/// Prints help to standard output and a usage error to standard error.
fn show(error: &clap::Error) -> Result<ExitCode> {
    let text = error.render().to_string();
    if error.use_stderr() {
        print::note(text.trim_end());
        return Ok(ExitCode::from(USAGE_ERROR));
    }
    print::result(text.trim_end()).map(|()| ExitCode::SUCCESS)
}
