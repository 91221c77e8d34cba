//! Shards, and the bytes that remain on each rank.

use brisk_replicate::{Shards, StateBytes, ZeroStage};

#[test]
fn shards_cover_everything_once() {
    for len in [0, 1, 127, 128, 129, 139_265] {
        for world_size in [1, 2, 3, 7, 64] {
            let shards = Shards::new(len, world_size);
            let used: Vec<_> = (0..world_size).flat_map(|rank| shards.used(rank)).collect();
            assert_eq!(used, (0..len).collect::<Vec<_>>(), "{len} on {world_size}");
            assert_eq!(shards.range(world_size - 1).end, shards.padded_len(), "{len} on {world_size}");
        }
    }
}

/// Rajbhandari et al., figure 1: 7.5 billion parameters on 64 ranks, GB.
#[test]
fn memory_is_what_the_paper_says() {
    let gb = |stage: ZeroStage| stage.bytes_per_rank(7_500_000_000, 64, StateBytes::MIXED_ADAM) as f64 / 1e9;
    let expected = [
        (ZeroStage::Replicated, 120.0),
        (ZeroStage::Optimizer, 31.4),
        (ZeroStage::Gradients, 16.6),
        (ZeroStage::Parameters, 1.88),
    ];
    for (stage, expected) in expected {
        assert!((gb(stage) - expected).abs() < 0.05, "{stage:?}: {} GB, not {expected}", gb(stage));
    }
}
