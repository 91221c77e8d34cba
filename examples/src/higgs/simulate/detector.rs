//! The detector: smeared energies, merged jets, b-tags, and the cuts.

use super::collision::{Collision, Flavour, MAX_PARTONS, Partons};
use super::four_vector::{FourVector, delta_r_squared};
use super::random::Random;

/// Minimum transverse momentum of the lepton and of a jet, GeV.
const MIN_PT: f64 = 20.0;
/// `sinh 2.5`: leptons and jets are detected within `|η| < 2.5`.
const SINH_MAX_ETA: f64 = 6.050_204_481_039_788;
/// Within this distance ΔR, two jets are merged, and a lepton is part of the jet.
const CONE: f64 = 0.4;

/// `σ(E)/E = √(a²/E + b²)`, a in √GeV.
const JET_RESOLUTION: (f64, f64) = (1.0, 0.08);
const LEPTON_RESOLUTION: (f64, f64) = (0.1, 0.01);
/// The mean fraction of the energy that leaves the cone or goes into a neutrino of the b's decay, exponentially distributed.
const LOST_LIGHT: f64 = 0.08;
const LOST_BOTTOM: f64 = 0.15;
/// Momenta too soft for a jet smear each component of the missing momentum by this much, GeV.
const SOFT_BLUR: f64 = 8.0;

/// How certain the tagger is that a jet contains a b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tag {
    #[default]
    None,
    Loose,
    Tight,
}

/// Probabilities of (tight, loose but not tight).
fn tag_chances(flavour: Flavour) -> (f64, f64) {
    match flavour {
        Flavour::Bottom => (0.60, 0.14),
        Flavour::Charm => (0.08, 0.10),
        Flavour::Light => (0.006, 0.02),
    }
}

/// A reconstructed jet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jet {
    pub(crate) momentum: FourVector,
    pub(crate) tag: Tag,
}

/// The recorded part of an event: the lepton, the missing transverse momentum, and the four hardest jets, hardest first.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) lepton: FourVector,
    pub(crate) missing: [f64; 2],
    pub(crate) jets: [Jet; 4],
}

/// The result of the tagger for each parton. It depends on a jet's tracks, not on its momentum, so it can be drawn first.
///
/// `None` unless two are tagged: events are selected by this, and four in ten are rejected here, before the expensive
/// draws.
pub(crate) fn tags(partons: &Partons, random: &mut Random) -> Option<[Tag; MAX_PARTONS]> {
    let mut tags = [Tag::None; MAX_PARTONS];
    for (tag, flavour) in tags[..partons.n].iter_mut().zip(partons.flavours) {
        *tag = drawn_tag(flavour, random);
    }
    (n_tagged(&tags) >= 2).then_some(tags)
}

/// Reconstructs `collision`. `None` unless it has an isolated lepton, four jets and two b-tags: the selection of the
/// UCI set.
pub(crate) fn observe(collision: &Collision, partons: &Partons, tags: &[Tag; MAX_PARTONS], random: &mut Random) -> Option<Seen> {
    let lepton = blurred(collision.lepton, LEPTON_RESOLUTION, random);
    if !is_seen(&lepton) {
        return None;
    }
    let (jets, n_jets) = merged(collision, partons, tags);
    let mut seen = [Jet::default(); MAX_PARTONS];
    let mut n_seen = 0;
    // An error in a jet's energy appears as missing momentum in the opposite direction.
    let mut missing = collision.neutrino + collision.lepton - lepton;
    for (jet, flavour) in &jets[..n_jets] {
        let momentum = blurred(jet.momentum, JET_RESOLUTION, random).scaled(kept(*flavour, random));
        missing = missing + jet.momentum - momentum;
        if is_seen(&momentum) {
            if delta_r_squared(&momentum, &lepton) < CONE * CONE {
                return None;
            }
            seen[n_seen] = Jet { momentum, tag: jet.tag };
            n_seen += 1;
        }
    }
    let seen = &mut seen[..n_seen];
    if n_seen < 4 || n_tagged(seen.iter().map(|jet| &jet.tag)) < 2 {
        return None;
    }
    seen.sort_unstable_by(|a, b| b.momentum.pt().total_cmp(&a.momentum.pt()));
    let missing = [missing.px + SOFT_BLUR * random.normal(), missing.py + SOFT_BLUR * random.normal()];
    Some(Seen { lepton, missing, jets: [seen[0], seen[1], seen[2], seen[3]] })
}

/// Partons as jets, before their energy is measured: a parton in the cone of an earlier one is merged with it. The heaviest flavour
/// comes first, so the jet has the flavour of the earlier parton.
fn merged(collision: &Collision, partons: &Partons, tags: &[Tag; MAX_PARTONS]) -> ([(Jet, Flavour); MAX_PARTONS], usize) {
    let mut jets = [(Jet::default(), Flavour::Light); MAX_PARTONS];
    let mut n = 0;
    let drawn = collision.partons[..partons.n].iter().zip(tags).zip(partons.flavours);
    for ((&momentum, &tag), flavour) in drawn {
        match jets[..n].iter_mut().find(|(jet, _)| delta_r_squared(&jet.momentum, &momentum) < CONE * CONE) {
            Some((jet, _)) => *jet = Jet { momentum: jet.momentum + momentum, tag: jet.tag.max(tag) },
            None => {
                jets[n] = (Jet { momentum, tag }, flavour);
                n += 1;
            }
        }
    }
    (jets, n)
}

fn n_tagged<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> usize {
    tags.into_iter().filter(|&&tag| tag > Tag::None).count()
}

fn is_seen(momentum: &FourVector) -> bool {
    momentum.pt() > MIN_PT && momentum.is_central(SINH_MAX_ETA)
}

/// Multiplies the energy by `1 + σ n`, with a minimum of a twentieth; the direction stays the same.
fn blurred(momentum: FourVector, (a, b): (f64, f64), random: &mut Random) -> FourVector {
    let sigma = (a * a / momentum.e + b * b).sqrt();
    momentum.scaled((1.0 + sigma * random.normal()).max(0.05))
}

/// The fraction of a jet's energy that is measured in its cone.
fn kept(flavour: Flavour, random: &mut Random) -> f64 {
    let mean = if flavour == Flavour::Bottom { LOST_BOTTOM } else { LOST_LIGHT };
    1.0 - (mean * random.exponential()).min(0.8)
}

fn drawn_tag(flavour: Flavour, random: &mut Random) -> Tag {
    let (tight, loose) = tag_chances(flavour);
    let u = random.uniform();
    if u < tight {
        Tag::Tight
    } else if u < tight + loose {
        Tag::Loose
    } else {
        Tag::None
    }
}
