//! Flat buffers of a model in checkpoints: sharded state is assembled, bucket by bucket, by the replicas that write it.

use std::collections::HashMap;
use std::ops::Range;

use brisk_nn::{Entry, Parameters, Placement, Sharding};

use crate::checkpoint::{Checkpoint, Part, SharedSlice};
use crate::data_parallel::{CheckpointFiles, DataParallel};
use crate::error::Error;

/// The parameters' layout in a checkpoint, and which replica writes which part of it.
#[derive(Debug)]
pub(crate) struct Flat<'a> {
    pub(crate) params: &'a Parameters,
    pub(crate) replicas: &'a DataParallel,
}

impl Flat<'_> {
    /// Whether this replica writes the values that all replicas have.
    pub(crate) fn is_first(&self) -> bool {
        self.replicas.rank() == 0
    }

    /// Adds the parameters by name, given the values that this replica keeps of them. Whole parameters are not copied.
    pub(crate) fn insert_values(
        &self,
        checkpoint: &mut Checkpoint,
        held: &SharedSlice<f32>,
        name: fn(&str) -> String,
    ) -> Result<(), Error> {
        let sharding = self.params.sharding().filter(|sharding| sharding.values == Placement::Sharded);
        self.insert_entries(checkpoint, sharding, held, |entry| name(&entry.name))
    }

    /// Adds an optimizer's state, given the values that this replica keeps: as one flat tensor, or as one tensor per parameter if
    /// each replica writes a file.
    pub(crate) fn insert_state(&self, checkpoint: &mut Checkpoint, name: &str, held: &SharedSlice<f32>) -> Result<(), Error> {
        let sharding = self.params.sharding();
        if self.replicas.config.files == CheckpointFiles::OneAReplica {
            return self.insert_entries(checkpoint, sharding, held, |entry| state_name(name, entry));
        }
        let whole = match sharding {
            None if self.is_first() => held.clone(),
            None => return Ok(()),
            Some(sharding) => {
                let mut whole = Vec::new();
                self.each_bucket(Some(sharding), held, |elements, values| {
                    whole.resize(whole.len().max(elements.end), 0.0);
                    whole[elements].copy_from_slice(&values);
                    Ok(())
                })?;
                whole.into()
            }
        };
        if whole.is_empty() { Ok(()) } else { checkpoint.insert(name, &[whole.len()], whole) }
    }

    /// Adds a tensor per parameter, of the parameters that this replica writes.
    fn insert_entries(
        &self,
        checkpoint: &mut Checkpoint,
        sharding: Option<&Sharding>,
        held: &SharedSlice<f32>,
        name: impl Fn(&Entry) -> String,
    ) -> Result<(), Error> {
        self.each_bucket(sharding, held, |elements, values| {
            self.entries(&elements).try_for_each(|entry| {
                let part = entry.range.start - elements.start..entry.range.end - elements.start;
                checkpoint.insert(name(entry), &entry.shape, values.slice(part))
            })
        })
    }

    /// Calls `f` with the elements and the values of each bucket that this replica writes: a part of `held`, or, if values are
    /// sharded, assembled from all replicas.
    fn each_bucket(
        &self,
        sharding: Option<&Sharding>,
        held: &SharedSlice<f32>,
        mut f: impl FnMut(Range<usize>, SharedSlice<f32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { params, replicas } = self;
        let Some(sharding) = sharding else {
            let written = replicas.cut_whole(params).into_iter().enumerate().filter(|(bucket, _)| replicas.writes(*bucket));
            return written.into_iter().try_for_each(|(_, elements)| f(elements.clone(), held.slice(elements)));
        };
        for (bucket, assembled) in replicas.assembled_buckets(sharding, held).enumerate() {
            let (elements, values) = assembled?;
            if replicas.writes(bucket) {
                f(elements, values.into())?;
            }
        }
        Ok(())
    }

    fn entries(&self, elements: &Range<usize>) -> impl Iterator<Item = &Entry> {
        let elements = elements.clone();
        let is_within = move |entry: &&Entry| elements.start <= entry.range.start && entry.range.end <= elements.end;
        self.params.entries().iter().filter(is_within)
    }
}

/// The parameter values in a checkpoint that this replica keeps.
pub(crate) fn values_of(checkpoint: &Checkpoint, params: &Parameters, name: fn(&str) -> String) -> Result<Vec<f32>, Error> {
    let all = params.len();
    let (pieces, len) = match are_sharded(params) {
        true => (own_pieces(params), params.state_len()),
        false => (vec![(0..all, 0)], all),
    };
    collected(checkpoint, params, |entry| name(&entry.name), &pieces, len)
}

/// The part of an optimizer's state in a checkpoint that this replica keeps.
pub(crate) fn state_of(checkpoint: &Checkpoint, params: &Parameters, name: &str) -> Result<Vec<f32>, Error> {
    let is_divided = params.entries().first().is_some_and(|entry| checkpoint.contains(&state_name(name, entry)));
    if is_divided {
        return collected(checkpoint, params, |entry| state_name(name, entry), &own_pieces(params), params.state_len());
    }
    Ok(params.state_of(checkpoint.f32(name, &[params.len()])?))
}

/// The tensors of a checkpoint of several files of which this replica needs some elements only, if any: those of `states`, which
/// are an optimizer's, and of sharded parameters, by each of `names`.
pub(crate) fn needed_parts(params: &Parameters, states: &[String], names: &[fn(&str) -> String]) -> HashMap<String, Part> {
    let mut parts = HashMap::new();
    if params.sharding().is_none() {
        return parts;
    }
    let pieces = own_pieces(params);
    for entry in params.entries() {
        // An entry lies within a bucket, of which a replica has one piece.
        let own = pieces.iter().map(|(elements, _)| overlap(elements, &entry.range)).find(|own| !own.is_empty());
        let own = own.map_or(0..0, |own| own.start - entry.range.start..own.end - entry.range.start);
        let part = Part { own, len: entry.range.len() };
        let of_states = states.iter().map(|state| state_name(state, entry));
        let of_values = names.iter().filter(|_| are_sharded(params)).map(|name| name(&entry.name));
        parts.extend(of_states.chain(of_values).map(|name| (name, part.clone())));
    }
    parts
}

fn are_sharded(params: &Parameters) -> bool {
    params.sharding().is_some_and(|sharding| sharding.values == Placement::Sharded)
}

/// The elements of the flat layout that this replica has state for, and where that is.
fn own_pieces(params: &Parameters) -> Vec<(Range<usize>, usize)> {
    let mut pieces = Vec::new();
    for piece in params.pieces() {
        let mut at = piece.state.start;
        for elements in piece.elements {
            at += elements.len();
            pieces.push((elements.clone(), at - elements.len()));
        }
    }
    pieces
}

/// Elements of the flat layout, each at its place among `len` values.
fn collected(
    checkpoint: &Checkpoint,
    params: &Parameters,
    name: impl Fn(&Entry) -> String,
    pieces: &[(Range<usize>, usize)],
    len: usize,
) -> Result<Vec<f32>, Error> {
    // Names and shapes are compared before memory is taken: the sizes of a model may come from a forged file.
    params.entries().iter().try_for_each(|entry| checkpoint.check_f32(&name(entry), &entry.shape))?;
    let mut values = vec![0.0; len];
    for entry in params.entries() {
        let start = entry.range.start;
        for (elements, at) in pieces {
            let own = overlap(elements, &entry.range);
            if !own.is_empty() {
                let found = checkpoint.f32_within(&name(entry), &entry.shape, own.start - start..own.end - start)?;
                values[at + own.start - elements.start..][..found.len()].copy_from_slice(found);
            }
        }
    }
    Ok(values)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

fn state_name(name: &str, entry: &Entry) -> String {
    format!("{name}.{}", entry.name)
}
