use brisk_loader::{Batching, LastBatch, Remainder, Shard};

use crate::batches::{Owned, all, from};
use crate::source::numbered;

/// The real rows of a rank's batches, in order.
fn real(batches: &[Owned]) -> Vec<u32> {
    batches.iter().flat_map(|batch| batch.ids[..batch.rows].to_vec()).collect()
}

/// The rows that PyTorch 2.15's `DistributedSampler(range(n), num_replicas=world, rank=r, shuffle=False, drop_last=…)` gives each
/// rank.
#[test]
fn distributed_sampler_vectors() {
    #[track_caller]
    fn check(n_rows: usize, world: usize, remainder: Remainder, expected: &[&[u32]]) {
        let source = numbered(n_rows, 1);
        for size in [1, 2, 3, 16] {
            for (rank, &expected) in expected.iter().enumerate() {
                let shard = Shard::distributed_sampler(rank, world, remainder);
                let batches = all(&source, &Batching::of(size).shard(shard).last(LastBatch::Short), 0);
                let ids: Vec<u32> = batches.iter().flat_map(|batch| batch.ids.clone()).collect();
                assert_eq!(ids, expected, "rank {rank} of {world}, {n_rows} rows, batches of {size}");
                let labels: Vec<u32> = batches.iter().flat_map(|batch| batch.labels.iter().map(|&y| y as u32)).collect();
                assert_eq!(labels, expected, "a row that comes again comes with its values");
            }
        }
        // Repeated rows have no weight: over all ranks every row counts once, except dropped ones.
        let mut counted: Vec<u32> = (0..world)
            .flat_map(|rank| real(&all(&source, &Batching::of(2).shard(Shard::distributed_sampler(rank, world, remainder)), 0)))
            .collect();
        counted.sort_unstable();
        let n_counted = if remainder == Remainder::Drop { n_rows / world * world } else { n_rows };
        assert_eq!(counted, (0..n_counted as u32).collect::<Vec<_>>(), "{n_rows} rows on {world} ranks");
    }
    check(10, 4, Remainder::Repeat, &[&[0, 4, 8], &[1, 5, 9], &[2, 6, 0], &[3, 7, 1]]);
    check(10, 4, Remainder::Drop, &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    check(10, 3, Remainder::Repeat, &[&[0, 3, 6, 9], &[1, 4, 7, 0], &[2, 5, 8, 1]]);
    check(3, 8, Remainder::Repeat, &[&[0], &[1], &[2], &[0], &[1], &[2], &[0], &[1]]);
    check(3, 8, Remainder::Drop, &[&[] as &[u32]; 8]);
}

#[test]
fn the_global_batch_does_not_depend_on_the_number_of_ranks() {
    let source = numbered(1000, 2);
    let global = |world: usize, size: usize, start: usize| -> Vec<Vec<u32>> {
        let batching = Batching::of(size).shuffled(5);
        let ranks: Vec<_> =
            (0..world).map(|rank| from(&source, &batching.clone().shard(Shard::blocks(rank, world)), 1, start)).collect();
        let n_batches = ranks[0].len();
        assert!(ranks.iter().all(|batches| batches.len() == n_batches), "every rank has as many batches");
        (0..n_batches)
            .map(|index| ranks.iter().flat_map(|batches| batches[index].ids[..batches[index].rows].to_vec()).collect())
            .collect()
    };
    let expected = global(1, 96, 0);
    assert_eq!(expected.iter().map(Vec::len).sum::<usize>(), 1000);
    for world in [2, 3, 4, 8] {
        assert_eq!(global(world, 96 / world, 0), expected, "{world} ranks");
        // A run saved on one number of ranks resumes on another.
        assert_eq!(global(world, 96 / world, 96 * 4), expected[4..], "{world} ranks, resumed");
    }
}

#[test]
fn every_row_is_one_rank_s_once() {
    for n_rows in [0, 1, 5, 31, 32, 33, 100] {
        let source = numbered(n_rows, 1);
        for world in [1, 2, 3, 7] {
            for size in [1, 4, 5] {
                for last in [LastBatch::Pad, LastBatch::Drop, LastBatch::Short] {
                    for deal in [Shard::blocks, |rank, world| Shard::distributed_sampler(rank, world, Remainder::Repeat)] {
                        let batching = Batching::of(size).shuffled(n_rows as u64).last(last);
                        let ranks: Vec<_> =
                            (0..world).map(|rank| all(&source, &batching.clone().shard(deal(rank, world)), 2)).collect();
                        assert!(ranks.iter().all(|batches| batches.len() == ranks[0].len()), "as many batches on each rank");
                        let mut rows: Vec<u32> = ranks.iter().flat_map(|batches| real(batches)).collect();
                        let n_seen = rows.len();
                        rows.sort_unstable();
                        rows.dedup();
                        assert_eq!(rows.len(), n_seen, "no row comes twice");
                        if last == LastBatch::Drop {
                            assert!(n_rows - n_seen < size * world, "less than a global batch is dropped");
                        } else {
                            assert_eq!(n_seen, n_rows, "no row is left out");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_resume_interleaved() {
    let source = numbered(103, 1);
    for rank in 0..4 {
        let batching = Batching::of(5).shuffled(1).shard(Shard::distributed_sampler(rank, 4, Remainder::Repeat));
        let whole = all(&source, &batching, 0);
        assert_eq!(from(&source, &batching, 0, 3 * 5 * 4), whole[3..], "rank {rank}");
    }
}
