//! A small collision simulation that creates a table with the columns of the HIGGS set of UCI.
//!
//! The set compares, in proton collisions at 8 TeV, a hypothetical signal with a background that looks similar:
//!
//! ```text
//! signal      g g → H⁰ → W∓ H±,  H± → W± h⁰,  h⁰ → b b̄      m(H⁰) = 425, m(H±) = 325, m(h⁰) = 125 GeV
//! background  g g → t t̄,  t → W b
//! ```
//!
//! Both end in W W b b̄, where one W decays into a lepton and a neutrino and the other into two quarks: a lepton, four jets, and
//! missing transverse momentum. They differ in which pairs and triples of these come from one particle, so the seven
//! invariant masses help, and a network finds more than they show (Baldi, Sadowski, Whiteson 2014, arXiv:1402.4735).
//!
//! An event is made in four steps, one file for each: [`collision`] draws a production and lets it decay ([`decay`], [`four_vector`]),
//! [`detector`] smears the result and applies the cuts, [`columns`] computes the 28 numbers. What is left out: matrix elements
//! (decays are isotropic, spins uncorrelated), parton showers beyond hard initial-state jets, pile-up, hadronisation.
//! So it replaces the real rows if these cannot be downloaded: similar columns, similar difficulty, not the same numbers.
//!
//! Energies, momenta and masses are in GeV with c = 1 until [`columns`] scales them to numbers of order one.

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

/// The fraction of signal rows in the table, as in the UCI set.
const SIGNAL_FRACTION: f64 = 0.53;

/// Increased with every change of the simulated events, so that files of a different simulation are not used.
const VERSION: u32 = 1;

/// Events by number: event `i` is a pure function of `(seed, i)`, independent of the order in which events are requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation {
    /// A different seed gives a different table.
    pub(crate) seed: u64,
}

impl Simulation {
    /// The label (1 for signal) and the 28 features, in the order of the UCI columns.
    ///
    /// Collisions are drawn until one passes the detector's cuts, about one in four; the label is drawn before that, so that the
    /// cuts do not change the fraction of signal.
    ///
    /// # Cost
    /// About three microseconds.
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
