//! Elementwise kernels that overwrite one of their inputs.

use std::sync::Arc;

use brisk_kernels::{Access, Kernel, MapInPlace};

use crate::record::program::{Program, Step, StepArg};

/// A step that updates one buffer in place, instead of reading it and writing a second.
struct InPlace {
    step: Step,
    stays: usize,
    goes: usize,
}

impl Program {
    /// The program with kernels [in place](Self::put_in_place), or unchanged if that takes more memory.
    pub(crate) fn in_place_if_not_larger(self) -> Self {
        let mut in_place = self.copy();
        in_place.put_in_place();
        match (self.plan(), in_place.plan()) {
            (Ok(before), Ok(after)) if before.transient_bytes() < after.transient_bytes() => self,
            _ => in_place,
        }
    }

    /// Lets each elementwise kernel write to a buffer that it reads, if it is the last to read it.
    fn put_in_place(&mut self) {
        for at in 0..self.steps.len() {
            if let Some(InPlace { step, stays, goes }) = self.in_place(at) {
                self.replace_buffer(0, goes, stays);
                self.steps[at] = step;
            }
        }
    }

    fn in_place(&self, at: usize) -> Option<InPlace> {
        let Step { kernel, args, .. } = &self.steps[at];
        let (map, written) = (kernel.as_map()?, args.last()?);
        let is_new = self.is_whole_transient(written) && !self.steps[..at].iter().any(|step| step.names(written.buffer));
        (0..map.inputs.len()).filter(|_| is_new).find_map(|i| {
            let operands = (0..map.inputs.len()).filter(|&other| other != i).map(|other| &args[other]);
            let value = &args[i];
            let is_last = !self.steps[at + 1..].iter().any(|step| step.names(value.buffer));
            let is_alone = operands.clone().all(|operand| operand.buffer != value.buffer);
            let same_size = self.buffers[value.buffer].len_bytes() == self.buffers[written.buffer].len_bytes();
            let kernel = MapInPlace { map: map.clone(), input: i };
            let may_be = is_last && is_alone && same_size && self.is_whole_transient(value) && kernel.check().is_ok();
            may_be.then(|| {
                let given = operands.chain([value]);
                let arg = |(arg, given): (&brisk_kernels::Arg, &StepArg)| StepArg {
                    name: arg.name,
                    access: arg.access,
                    ..given.clone()
                };
                let args = kernel.args().iter().zip(given).map(arg).collect();
                InPlace { step: Step { kernel: Arc::new(kernel), args, host: None }, stays: value.buffer, goes: written.buffer }
            })
        })
    }

    fn is_whole_transient(&self, arg: &StepArg) -> bool {
        let buffer = &self.buffers[arg.buffer];
        buffer.persistent.is_none() && arg.bytes == (0..buffer.len_bytes()) && arg.access != Access::Scratch
    }
}
