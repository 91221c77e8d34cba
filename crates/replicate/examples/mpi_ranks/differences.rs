//! Ranks that differ: every one is told, before a number is changed.

use brisk_replicate::{Collective, CollectiveExt, Described, Error, Mpi, ReduceOp, agree};

/// The last rank differs from the others in what `case` says.
pub(crate) fn show(replica: &mut Mpi, case: &str) -> Result<(), Error> {
    let last = replica.rank() + 1 == replica.world_size();
    match case {
        "length" => replica.all_reduce(&mut vec![1.0_f32; if last { 11 } else { 10 }], ReduceOp::Sum),
        "type" if last => replica.broadcast(&mut [1_u32; 4], 0),
        "type" => replica.broadcast(&mut [1.0_f32; 4], 0),
        "order" if last => replica.all_reduce(&mut [1.0_f32; 4], ReduceOp::Sum),
        "order" => replica.barrier(),
        "version" if last => agree_as_another_version(replica),
        _ => {
            let shape = if last && case == "shape" { "[300, 28] f32" } else { "[256, 28] f32" };
            agree(replica, &[Described { what: "layers.0.weight".to_owned(), is: shape.to_owned() }])
        }
    }
}

/// What the others see of a rank that was built with version 0.0.1: the calls of `agree`, with its own version in the list.
fn agree_as_another_version(replica: &mut Mpi) -> Result<(), Error> {
    let (rank, n) = (replica.rank(), replica.world_size());
    let mut n_entries = [2_u32];
    replica.all_reduce(&mut n_entries, ReduceOp::Max)?;
    // Hashes of two entries; no other list has these.
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
