//! A small collision simulation that makes a table shaped like the HIGGS set of UCI.
//!
//! The set compares, in proton collisions at 8 TeV, a hypothetical signal with the background that looks like it:
//!
//! ```text
//! signal      g g → H⁰ → W∓ H±,  H± → W± h⁰,  h⁰ → b b̄      m(H⁰) = 425, m(H±) = 325, m(h⁰) = 125 GeV
//! background  g g → t t̄,  t → W b
//! ```
//!
//! Both end in W W b b̄, of which one W gives a lepton and a neutrino and the other two quarks: a lepton, four jets, and
//! transverse momentum that is missing. They differ in which pairs and triples of them were one particle once, so the seven
//! invariant masses help, and a network finds more than they say (Baldi, Sadowski, Whiteson 2014, arXiv:1402.4735).
//!
//! An event is made in four steps, one file for each: [`collision`] draws a production and lets it decay ([`decay`], [`four_vector`]),
//! [`detector`] blurs the result and applies the cuts, [`columns`] computes the 28 numbers. What is left out: matrix elements
//! (decays are isotropic, spins uncorrelated), parton showers beyond hard initial-state jets, pile-up, hadronisation.
//! So it stands in for the real rows where those cannot be downloaded: similar columns, similar difficulty, not the same numbers.
//!
//! Energies, momenta and masses are in GeV with c = 1 until [`columns`] makes them numbers of order one.

mod collision;
mod columns;
mod csv;
mod decay;
mod detector;
mod file;
mod four_vector;
mod random;

#[cfg(test)]
mod tests;

use csv::write_csv;
pub(crate) use file::SimulatedFile;

use collision::{Partons, Process};
use detector::Seen;
use random::Random;

/// How much of the table is signal, as in the UCI set.
const SIGNAL_FRACTION: f64 = 0.53;

/// Raised with every change of the simulated events, so that files of another simulation are not used.
const VERSION: u32 = 1;

/// Events by number: event `i` is a pure function of `(seed, i)`, independent of the order in which events are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation {
    /// Another seed, another table.
    pub(crate) seed: u64,
}

impl Simulation {
    /// The label (1 for signal) and the 28 features, in the order of the UCI columns.
    ///
    /// Collisions are drawn until one passes the detector's cuts, about one in four; the label is drawn before, so that the
    /// cuts do not change its share.
    ///
    /// # Cost
    /// Some three microseconds.
    pub(crate) fn event(&self, i: u64) -> (u8, [f32; 28]) {
        let mut random = Random::for_event(self.seed, i);
        let process = if random.uniform() < SIGNAL_FRACTION { Process::Higgs } else { Process::TopPair };
        loop {
            if let Some(seen) = attempt(process, &mut random) {
                return (process.label(), columns::features(&seen));
            }
        }
    }
}

fn attempt(process: Process, random: &mut Random) -> Option<Seen> {
    let partons = Partons::draw(random);
    let tags = detector::tags(&partons, random)?;
    let collision = process.collide(partons.n, random)?;
    detector::observe(&collision, &partons, &tags, random)
}
