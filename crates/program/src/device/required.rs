use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::Device;
use crate::error::Error;
use crate::record::persistent::Persistent;
use crate::record::program::Program;

/// The [required](Persistent::required) buffers of a program, checked before its first run, and all buffers that it writes.
#[derive(Debug)]
pub(crate) struct Required {
    program: String,
    /// Those that a kernel reads before any kernel of the program has written to them, with the kernel's name.
    read: Vec<(Persistent, &'static str)>,
    written: Vec<Persistent>,
    has_run: AtomicBool,
}

impl Required {
    pub(crate) fn of(program: &Program) -> Self {
        let mut required =
            Self { program: program.name().to_owned(), read: Vec::new(), written: Vec::new(), has_run: false.into() };
        for (buffer, persistent) in program.buffers.iter().map(|buffer| buffer.persistent.as_ref()).enumerate() {
            let Some(persistent) = persistent else { continue };
            let uses = program.steps.iter().flat_map(|step| step.args.iter().map(|arg| (step.kernel.name(), arg)));
            let mut uses = uses.filter(|(_, arg)| arg.buffer == buffer).peekable();
            if let Some(&(kernel, _)) = uses.peek().filter(|(_, arg)| persistent.is_required() && arg.access.reads()) {
                required.read.push((persistent.clone(), kernel));
            }
            if uses.any(|(_, arg)| arg.access.writes()) {
                required.written.push(persistent.clone());
            }
        }
        required
    }

    /// Called before a run: checks that the buffers it reads have been written. After the first run nothing is looked up.
    pub(crate) fn check(&self, device: &Device) -> Result<(), Error> {
        if self.has_run.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.read.iter().find(|(persistent, _)| !device.is_written(persistent)) {
            None => Ok(()),
            Some((persistent, kernel)) => Err(Error::Unwritten {
                program: self.program.clone(),
                kernel,
                buffer: persistent.name().to_owned(),
                device: device.info().name.clone(),
            }),
        }
    }

    /// Called after `n` runs: notes the buffers they have written.
    pub(crate) fn note_run(&self, device: &Device, n: usize) {
        if n == 0 {
            return;
        }
        if self.has_run.swap(true, Ordering::Relaxed) {
            self.written.iter().for_each(|persistent| persistent.note_write(device));
        } else {
            self.written.iter().for_each(|persistent| device.set_written(persistent));
        }
    }
}
