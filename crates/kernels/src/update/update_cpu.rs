use rayon::prelude::*;

use super::rule::Rule;
use super::step_value::StepValue;
use super::update::{GROUP_LEN, Groups, Update};
use crate::cpu::team::OnTeam;
use crate::kernel::twin::TwinArgs;
use crate::vectorised::{inlined, vectorised};

/// Elements per task.
const BLOCK_LEN: usize = 16 * 1024;
/// Elements that are copied, updated and copied back, so that the compiler sees that they do not overlap. Those of a group of
/// parameters, so that they have one rate.
const TILE: usize = GROUP_LEN;

/// On a cache line: vectors that span two lines take longer to load and store.
#[repr(align(64))]
struct Tile([f32; TILE]);

pub(crate) fn run<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize>(
    kernel: &Update<R, V, I, O>,
    args: &mut TwinArgs<'_>,
) {
    let rule = &kernel.rule;
    let state: &[u32] = args.read("state");
    let table: &[f32] = if kernel.reads_table() { args.read("table") } else { &[0.0] };
    let mut numbers = kernel.numbers().map(|name| args.read::<f32>(name)[0]);
    let step = rule.values().map(|value| match value {
        StepValue::Number => numbers.next().expect("an argument for each"),
        value => value.value(table, state),
    });
    drop(numbers);
    if rule.takes_place(StepValue::Skipped.value(table, state), step) == 0.0 {
        return;
    }
    let (inputs, replaced) = Update::<R, V, I, O>::names();
    let inputs: [&[f32]; I] = std::array::from_fn(|i| args.read(inputs[i]));
    let groups: &[f32] = if kernel.groups == Groups::Table { args.read("groups") } else { &[] };
    let mut rest: [&mut [f32]; O] = std::array::from_fn(|i| args.write(replaced[i]));
    let job = Job { rule, kinds: rule.values(), step, inputs, groups };
    if kernel.n <= BLOCK_LEN {
        return job.run(0, rest);
    }
    let tasks: Vec<[&mut [f32]; O]> = (0..kernel.n.div_ceil(BLOCK_LEN))
        .map(|_| {
            rest.each_mut().map(|rest| {
                let at = rest.len().min(BLOCK_LEN);
                rest.split_off_mut(..at).expect("it is within the rest")
            })
        })
        .collect();
    tasks.into_par_iter().enumerate().for_each_on_team(|(i, replaced)| job.run(i * BLOCK_LEN, replaced));
}

struct Job<'a, R, const V: usize, const I: usize> {
    rule: &'a R,
    kinds: [StepValue; V],
    step: [f32; V],
    inputs: [&'a [f32]; I],
    groups: &'a [f32],
}

impl<R, const V: usize, const I: usize> Job<'_, R, V, I> {
    /// The elements from `start` on.
    fn run<const O: usize>(&self, start: usize, mut replaced: [&mut [f32]; O])
    where
        R: Rule<V, I, O>,
    {
        let n = replaced[0].len();
        let n_tiles = n / TILE;
        let n_in_tiles = n_tiles * TILE;
        vectorised(inlined!(|| {
            // A copy, which the compiler knows not to change.
            let rule = self.rule.clone();
            let given = self.inputs.map(|input| &input[start..start + n].as_chunks().0[..n_tiles]);
            let tiles_of = replaced.each_mut().map(|values| &mut values.as_chunks_mut().0[..n_tiles]);
            let mut step = self.step;
            for tile in 0..n_tiles {
                if !self.groups.is_empty() {
                    match self.step_of(start / GROUP_LEN + tile) {
                        Some(of_group) => step = of_group,
                        None => continue,
                    }
                }
                let inputs: [Tile; I] = std::array::from_fn(inlined!(|k| Tile(given[k][tile])));
                let mut tiles: [Tile; O] = std::array::from_fn(inlined!(|k| Tile(tiles_of[k][tile])));
                update(&rule, step, &inputs, &mut tiles);
                for k in 0..O {
                    tiles_of[k][tile] = tiles[k].0;
                }
            }
            let Some(step) = self.step_of((start + n_in_tiles) / GROUP_LEN) else { return };
            if n_in_tiles < n {
                let padded = |values: &[f32]| {
                    let mut tile = Tile([0.0; TILE]);
                    tile.0[..n - n_in_tiles].copy_from_slice(&values[..n - n_in_tiles]);
                    tile
                };
                let inputs = self.inputs.map(|input| padded(&input[start + n_in_tiles..]));
                let mut tiles = std::array::from_fn(|k| padded(&replaced[k][n_in_tiles..]));
                update(&rule, step, &inputs, &mut tiles);
                for (values, tile) in replaced.iter_mut().zip(&tiles) {
                    values[n_in_tiles..].copy_from_slice(&tile.0[..n - n_in_tiles]);
                }
            }
        }));
    }

    /// The values of the step for a group; `None` if it is not updated.
    #[inline(always)]
    fn step_of(&self, group: usize) -> Option<[f32; V]> {
        let mut step = self.step;
        if let Some([factor, decay]) = self.groups.get(2 * group..).and_then(|own| own.first_chunk()) {
            if *factor < 0.0 {
                return None;
            }
            for (value, kind) in step.iter_mut().zip(&self.kinds) {
                match kind {
                    StepValue::Rate => *value *= factor,
                    StepValue::Decay(_) => *value = *decay,
                    _ => {}
                }
            }
        }
        Some(step)
    }
}

#[inline(always)]
fn update<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize>(
    rule: &R,
    step: [f32; V],
    inputs: &[Tile; I],
    replaced: &mut [Tile; O],
) {
    for i in 0..TILE {
        let x = std::array::from_fn(inlined!(|k| inputs[k].0[i]));
        let old = std::array::from_fn(inlined!(|k| replaced[k].0[i]));
        let new = rule.update(step, x, old);
        for k in 0..O {
            replaced[k].0[i] = new[k];
        }
    }
}
