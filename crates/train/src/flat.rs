//! Flat buffers of a model in checkpoints: sharded state is assembled, bucket by bucket, by the replicas that write it.

use std::ops::Range;

use brisk_nn::{Entry, Parameters, Placement};

use crate::checkpoint::{Checkpoint, SharedSlice};
use crate::data_parallel::{CheckpointFiles, DataParallel};
use crate::error::Error;

/// The parameters' layout in a checkpoint, and which replica writes which part of it.
#[derive(Debug)]
pub(crate) struct Flat<'a> {
    pub(crate) params: &'a Parameters,
    pub(crate) replicas: Option<&'a DataParallel>,
}

impl Flat<'_> {
    /// Returns an error for sharded parameters if there are no replicas that have the rest.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.params.division().is_none() || self.replicas.is_some() {
            return Ok(());
        }
        let found = "parameters that are sharded across replicas".to_owned();
        let expected = "parameters that are whole, or replicas (`with_replicas`) that have the rest";
        Err(Error::Tensor(brisk_nn::Error::Refused { op: "bind", found, expected }))
    }

    /// Whether this replica writes the values that all replicas have.
    pub(crate) fn is_first(&self) -> bool {
        self.replicas.is_none_or(|replicas| replicas.rank() == 0)
    }

    /// Adds the parameters by name, given the values that this replica keeps of them; without replicas nothing is copied.
    pub(crate) fn insert_values(
        &self,
        checkpoint: &mut Checkpoint,
        held: &SharedSlice<f32>,
        name: fn(&str) -> String,
    ) -> Result<(), Error> {
        let Some(replicas) = self.replicas else {
            let insert = |entry: &Entry| checkpoint.insert(name(&entry.name), &entry.shape, held.slice(entry.range.clone()));
            return self.params.entries().iter().try_for_each(insert);
        };
        let kept = self.params.division().map_or(Placement::Replicated, |division| division.values);
        self.each_bucket(replicas, kept, held, |elements, values| {
            let insert =
                |entry: &Entry| checkpoint.insert(name(&entry.name), &entry.shape, part(&elements, values, entry).to_vec());
            self.entries(&elements).try_for_each(insert)
        })
    }

    /// All values of the parameters, on each replica, given the values that this replica keeps.
    pub(crate) fn whole_values(&self, held: &[f32]) -> Result<Vec<f32>, Error> {
        let kept = self.params.division().map_or(Placement::Replicated, |division| division.values);
        let Some(replicas) = self.replicas else { return Ok(held.to_vec()) };
        let mut whole = vec![0.0; self.params.len()];
        replicas.each_bucket(self.params, kept, held, |_, elements, values| {
            whole[elements].copy_from_slice(values);
            Ok(())
        })?;
        Ok(whole)
    }

    /// Adds an optimizer's state, given the values that this replica keeps: as one flat tensor, or as one tensor per parameter if each replica writes a file.
    pub(crate) fn insert_state(&self, checkpoint: &mut Checkpoint, name: &str, held: &SharedSlice<f32>) -> Result<(), Error> {
        let Some(replicas) = self.replicas else {
            return if held.is_empty() { Ok(()) } else { checkpoint.insert(name, &[held.len()], held.clone()) };
        };
        let kept = if self.params.division().is_some() { Placement::Sharded } else { Placement::Replicated };
        if replicas.files() == CheckpointFiles::OneAReplica {
            return self.each_bucket(replicas, kept, held, |elements, values| {
                let insert = |entry: &Entry| {
                    checkpoint.insert(state_name(name, entry), &entry.shape, part(&elements, values, entry).to_vec())
                };
                self.entries(&elements).try_for_each(insert)
            });
        }
        let mut whole = Vec::new();
        self.each_bucket(replicas, kept, held, |elements, values| {
            whole.resize(whole.len().max(elements.end), 0.0);
            whole[elements].copy_from_slice(values);
            Ok(())
        })?;
        if whole.is_empty() { Ok(()) } else { checkpoint.insert(name, &[whole.len()], whole) }
    }

    /// Calls `f` with the elements and the values of each bucket that this replica writes.
    fn each_bucket(
        &self,
        replicas: &DataParallel,
        kept: Placement,
        held: &[f32],
        mut f: impl FnMut(Range<usize>, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        replicas.each_bucket(
            self.params,
            kept,
            held,
            |bucket, elements, values| if replicas.writes(bucket) { f(elements, values) } else { Ok(()) },
        )
    }

    fn entries(&self, elements: &Range<usize>) -> impl Iterator<Item = &Entry> {
        let elements = elements.clone();
        let is_within = move |entry: &&Entry| elements.start <= entry.range.start && entry.range.end <= elements.end;
        self.params.entries().iter().filter(is_within)
    }
}

/// All parameter values in a checkpoint, in the flat layout.
pub(crate) fn values_of(checkpoint: &Checkpoint, params: &Parameters, name: fn(&str) -> String) -> Result<Vec<f32>, Error> {
    flat_of(checkpoint, params, |entry| name(&entry.name))
}

/// The part of an optimizer's state in a checkpoint that this replica keeps.
pub(crate) fn state_of(checkpoint: &Checkpoint, params: &Parameters, name: &str) -> Result<Vec<f32>, Error> {
    let is_divided = params.entries().first().is_some_and(|entry| checkpoint.contains(&state_name(name, entry)));
    if is_divided {
        return Ok(params.state_of(&flat_of(checkpoint, params, |entry| state_name(name, entry))?));
    }
    Ok(params.state_of(checkpoint.f32(name, &[params.len()])?))
}

fn flat_of(checkpoint: &Checkpoint, params: &Parameters, name: impl Fn(&Entry) -> String) -> Result<Vec<f32>, Error> {
    // Names and shapes are compared before memory is taken: the sizes of a model may come from a forged file.
    params.entries().iter().try_for_each(|entry| checkpoint.f32(&name(entry), &entry.shape).map(drop))?;
    let mut values = vec![0.0; params.len()];
    for entry in params.entries() {
        values[entry.range.clone()].copy_from_slice(checkpoint.f32(&name(entry), &entry.shape)?);
    }
    Ok(values)
}

/// The values of an entry, given the values of the range of elements that contains it.
fn part<'v>(elements: &Range<usize>, values: &'v [f32], entry: &Entry) -> &'v [f32] {
    &values[entry.range.start - elements.start..entry.range.end - elements.start]
}

fn state_name(name: &str, entry: &Entry) -> String {
    format!("{name}.{}", entry.name)
}
