//! Models that differ are found before anything is averaged.

use brisk_replicate::{Collective, Error, agree, run_replicas};

fn described(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|&(what, is)| (what.to_owned(), is.to_owned())).collect()
}

#[test]
fn the_same_everywhere() {
    let same = described(&[("layers.0.weight", "[256, 28] f32"), ("layers.0.bias", "[256] f32")]);
    assert_eq!(run_replicas(3, |replica| agree(replica, &same)), Ok(vec![(); 3]));
    assert_eq!(run_replicas(2, |replica| agree(replica, &[])), Ok(vec![(); 2]));
}

#[test]
fn a_shape_that_differs() {
    let failed = run_replicas(3, |replica| {
        let shape = if replica.rank() == 2 { "[300] f32" } else { "[256] f32" };
        agree(replica, &described(&[("layers.0.weight", "[256, 28] f32"), ("layers.0.bias", shape)]))
    });
    let text = failed.expect_err("rank 2 has another bias").to_string();
    assert_eq!(
        text,
        "`layers.0.bias` differs between rank 0 and rank 2: [256] f32 against [300] f32; start all ranks with the same program, settings and data"
    );
}

#[test]
fn an_entry_that_is_missing() {
    let all = described(&[("a", "1"), ("b", "2")]);
    let shared = |n: fn(usize) -> usize| {
        run_replicas(2, |replica| {
            let mine = &all[..n(replica.rank())];
            agree(replica, mine)
        })
    };
    let failed = shared(|rank| 2 - rank);
    let Err(Error::Disagreement { what, mine, theirs, other: 1, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!((what.as_str(), mine.as_str(), theirs.as_str()), ("`b`", "2", "nothing"), "of rank 1");
    let failed = shared(|rank| 1 + rank);
    let Err(Error::Disagreement { what, mine, theirs, other: 1, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!((what.as_str(), mine.as_str(), theirs.as_str()), ("`b`", "nothing", "2"), "of rank 0");
}

#[test]
fn entries_are_counted_from_0() {
    let failed = run_replicas(2, |replica| {
        let second = if replica.rank() == 0 { "b" } else { "c" };
        agree(replica, &described(&[("a", "1"), (second, "2")]))
    });
    let Err(Error::Disagreement { what, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(what, "entry 1 (`b`, `c`)");
}
