//! The average of the parameters that is validated and kept instead of them.

use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::{Ema, EmaConfig, Optimizer, Parameters};

use crate::error::Error;

/// Which average is validated, if any.
#[derive(Debug)]
pub(super) enum Average {
    /// None: the parameters are.
    None,
    /// One that each step updates.
    Ema(Ema),
    /// That of the optimizer, which a program of its own computes from the optimizer's state.
    OfOptimizer(Box<Computed>),
}

/// An average and its program, which is compiled before the first step.
#[derive(Debug)]
pub(super) struct Computed {
    averaged: Parameters,
    graph: Graph,
    executable: Option<Executable>,
}

impl Average {
    /// That of the settings, or of the optimizer.
    pub(super) fn of(ema: Option<EmaConfig>, params: &Parameters, optimizer: &dyn Optimizer) -> Result<Self, Error> {
        let refused = |found: &str, expected: &'static str| Error::setting("ema", found.to_owned(), expected);
        let graph = Graph::inference("average");
        match (ema, optimizer.record_averaged(&graph, params)) {
            (Some(_), _) if params.sharding().is_some() => Err(refused(
                "parameters that are sharded across replicas",
                "whole parameters: no ema, or `ZeroStage::Replicated`",
            )),
            (Some(_), Some(_)) => {
                Err(refused("an optimizer whose own average is validated", "no ema, or another optimizer, such as AdamW"))
            }
            (Some(config), None) => Ok(Self::Ema(Ema::new(params, config))),
            (None, Some(averaged)) => {
                graph.check()?;
                Ok(Self::OfOptimizer(Box::new(Computed { averaged, graph, executable: None })))
            }
            (None, None) => Ok(Self::None),
        }
    }

    pub(super) fn compile(mut self, device: &Device) -> Result<Self, Error> {
        if let Self::OfOptimizer(computed) = &mut self {
            computed.executable = Some(computed.graph.compile(device)?);
        }
        Ok(self)
    }

    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The average that each step updates, which has its own buffers, such as the running statistics of batch normalisation.
    pub(super) fn ema(&self) -> Option<&Ema> {
        if let Self::Ema(ema) = self { Some(ema) } else { None }
    }

    /// The model that is validated.
    pub(super) fn evaluated(&self, params: &Parameters) -> Parameters {
        match self {
            Self::None => params.clone(),
            Self::Ema(ema) => ema.averaged(params),
            Self::OfOptimizer(computed) => computed.averaged.clone(),
        }
    }

    /// Computes the average of the steps so far, unless they have updated it.
    pub(super) fn update(&self) -> Result<(), Error> {
        match self {
            Self::OfOptimizer(computed) => Ok(computed.executable.as_ref().map_or(Ok(()), |executable| executable.run(1))?),
            Self::None | Self::Ema(_) => Ok(()),
        }
    }

    /// Bytes that it takes on the device.
    pub(super) fn len_bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Ema(ema) => ema.len_bytes(),
            Self::OfOptimizer(computed) => computed.averaged.values().len_bytes(),
        }
    }
}
