//! Ranks that differ: all of them get an error before any value changes.

use brisk_replicate::{Collective, CollectiveExt, Error, Mpi, ReduceOp, agree};

use crate::options::Case;
use crate::sums;

/// Makes the last rank differ from the others as `case` says.
pub(crate) fn show(replica: &mut Mpi, case: &Case) -> Result<(), Error> {
    let last = replica.rank() + 1 == replica.world_size();
    match case {
        Case::Length => replica.all_reduce(&mut vec![1.0_f32; if last { 11 } else { 10 }], ReduceOp::Sum),
        Case::Type if last => replica.broadcast(&mut [1_u32; 4], 0),
        Case::Type => replica.broadcast(&mut [1.0_f32; 4], 0),
        Case::Order if last => replica.all_reduce(&mut [1.0_f32; 4], ReduceOp::Sum),
        Case::Order => replica.barrier(),
        Case::Version if last => agree_as_another_version(replica),
        _ => {
            let shape = if last && matches!(case, Case::Shape) { "[300, 28] f32" } else { "[256, 28] f32" };
            agree(replica, &[("layers.0.weight".to_owned(), shape.to_owned())])
        }
    }
}

/// Calls that the last rank makes differently, one after the other; the errors.
///
/// MPI itself could not continue after an operation in which lengths differ; here no rank has begun it.
pub(crate) fn few_and_many(replica: &mut Mpi) -> Result<Vec<String>, Error> {
    let (rank, n) = (replica.rank(), replica.world_size());
    let most = sums::limit(n) / 4;
    let mut errors = Vec::new();
    let mut check = |result: Result<(), Error>| match result {
        Err(Error::Mismatch { mine, theirs, .. }) => {
            errors.push(format!("{mine} and {theirs}"));
            Ok(())
        }
        Err(other) => Err(other),
        Ok(()) => panic!("rank {rank} has not noticed the difference"),
    };
    for last in [false, true] {
        // Who differs is the last rank; who sends many is each in turn.
        let many = last == (rank + 1 == n);
        let values = |many: bool| vec![1.0_f32; if many { most + 1 } else { most }];
        check(replica.all_reduce(&mut values(many), ReduceOp::Sum))?;
        check(if many {
            replica.all_reduce(&mut vec![1_u32; 100_000], ReduceOp::Max)
        } else {
            replica.all_reduce(&mut [1_u8; 7], ReduceOp::Max)
        })?;
        check(if many { replica.broadcast(&mut values(true), 0) } else { replica.all_gather(&[1.0_f32], &mut vec![0.0; n]) })?;
        let mut shard = vec![0.0; 2000];
        check(if many { replica.reduce_scatter(&vec![1.0; 2000 * n], &mut shard, ReduceOp::Sum) } else { replica.barrier() })?;
    }
    let mut sum = [1_u32];
    replica.all_reduce(&mut sum, ReduceOp::Sum)?;
    assert_eq!(sum, [n as u32], "no message of the operations before is left");
    Ok(errors)
}

/// Behaves as a rank built with version 0.0.1: makes the calls of `agree` with that version in its list.
fn agree_as_another_version(replica: &mut Mpi) -> Result<(), Error> {
    let (rank, n) = (replica.rank(), replica.world_size());
    let mut n_entries = [2_u32];
    replica.all_reduce(&mut n_entries, ReduceOp::Max)?;
    // Hashes of two entries that differ from those of any real list.
    replica.all_gather(&[1_u32, 2, 3, 4], &mut vec![0; 4 * n])?;
    let theirs = text_of(replica, 0, "")?;
    let mine = text_of(replica, rank, "the version of brisk-replicate\n0.0.1")?;
    let (what, is) = theirs.split_once('\n').unwrap_or((&theirs, ""));
    let mine = mine.split_once('\n').map_or("", |(_, is)| is);
    Err(Error::Disagreement { what: format!("`{what}`"), rank: 0, mine: is.to_owned(), other: rank, theirs: mine.to_owned() })
}

fn text_of(replica: &mut Mpi, root: usize, text: &str) -> Result<String, Error> {
    let mut len = [text.len() as u32];
    replica.broadcast(&mut len, root)?;
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(len[0] as usize, 0);
    replica.broadcast(&mut bytes, root)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
