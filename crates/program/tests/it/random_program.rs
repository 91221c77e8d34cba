//! Random programs over u32, and what they compute when no two buffers share memory.

use std::ops::Range;

use brisk_program::kernels::DType;
use brisk_program::{Persistent, Program, Slice};

use crate::random::Random;
use crate::toy::{Bump, Mix};

/// Slices start at multiples of this, which every adapter supports.
const GRAIN: usize = 64;

#[derive(Debug)]
pub(crate) struct RandomProgram {
    pub(crate) program: Program,
    pub(crate) persistents: Vec<Persistent>,
    steps: Vec<Step>,
    /// Length of each buffer, the persistent ones first.
    lens: Vec<usize>,
}

#[derive(Debug)]
enum Step {
    Mix { salt: u32, a: Place, b: Place, y: usize },
    Bump(Place),
}

#[derive(Debug, Clone)]
struct Place {
    buffer: usize,
    range: Range<usize>,
}

impl RandomProgram {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n_persistents = 1 + random.below(3);
        let len = |random: &mut Random| GRAIN * (1 + random.below(6)) - random.below(GRAIN / 2);
        let persistents: Vec<_> =
            (0..n_persistents).map(|i| Persistent::new(format!("p{i}"), DType::U32, len(&mut random))).collect();
        let mut program = Program::new(format!("random {seed}"));
        let mut slices: Vec<_> = persistents.iter().map(|persistent| program.persistent(persistent)).collect();
        let mut steps = Vec::new();
        for i in 0..4 + random.below(20) {
            let written: Vec<_> = (0..slices.len()).filter(|&i| is_written(&steps, n_persistents, i)).collect();
            if random.below(4) == 0 {
                let buffer = written[random.below(written.len())];
                let n = 1 + random.below(slices[buffer].len());
                let place = sub(&mut random, buffer, slices[buffer].len(), n);
                program.push(Bump { n }, &[slices[place.buffer].slice(place.range.clone())]).expect("a bump is well formed");
                steps.push(Step::Bump(place));
                continue;
            }
            let y = if random.below(3) == 0 {
                random.below(slices.len())
            } else {
                // Sometimes one that is never read, or never written: it must not affect its neighbours.
                slices.push(program.transient(format!("t{i}"), DType::U32, len(&mut random)));
                slices.len() - 1
            };
            let n = slices[y].len();
            let readable: Vec<_> = written.into_iter().filter(|&i| i != y && slices[i].len() >= n).collect();
            let Some(&a) = readable.get(random.below(readable.len().max(1))) else { continue };
            let b = readable[random.below(readable.len())];
            let (a, b) = (sub(&mut random, a, slices[a].len(), n), sub(&mut random, b, slices[b].len(), n));
            let salt = random.next() as u32;
            let args = [slices[a.buffer].slice(a.range.clone()), slices[b.buffer].slice(b.range.clone()), slices[y]];
            program.push(Mix { n, salt }, &args).expect("a mix is well formed");
            steps.push(Step::Mix { salt, a, b, y });
        }
        let lens = slices.iter().map(Slice::len).collect();
        Self { program, persistents, steps, lens }
    }

    /// The contents of the persistent buffers after `n` replays in which no buffers share memory.
    pub(crate) fn expected(&self, start: &[Vec<u32>], n: usize) -> Vec<Vec<u32>> {
        let mut buffers: Vec<_> = self.lens.iter().map(|&len| vec![0xDEAD_BEEF_u32; len]).collect();
        buffers[..start.len()].clone_from_slice(start);
        for step in (0..n).flat_map(|_| &self.steps) {
            match step {
                Step::Bump(Place { buffer, range }) => {
                    buffers[*buffer][range.clone()].iter_mut().for_each(|x| *x = x.wrapping_mul(5).wrapping_add(1));
                }
                Step::Mix { salt, a, b, y } => {
                    let (a, b) = (&buffers[a.buffer][a.range.clone()], &buffers[b.buffer][b.range.clone()]);
                    let mixed = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(3).wrapping_add(*salt) ^ b).collect();
                    buffers[*y] = mixed;
                }
            }
        }
        buffers.truncate(self.persistents.len());
        buffers
    }

    pub(crate) fn start(&self, seed: u64) -> Vec<Vec<u32>> {
        let mut random = Random::new(seed);
        self.persistents.iter().map(|persistent| random.u32s(persistent.len())).collect()
    }
}

fn is_written(steps: &[Step], n_persistents: usize, buffer: usize) -> bool {
    buffer < n_persistents || steps.iter().any(|step| matches!(step, Step::Mix { y, .. } if *y == buffer))
}

/// `n` elements of a buffer, from a start that every adapter supports.
fn sub(random: &mut Random, buffer: usize, len: usize, n: usize) -> Place {
    let start = GRAIN * random.below((len - n) / GRAIN + 1);
    Place { buffer, range: start..start + n }
}
