use std::fmt;

use brisk_kernels::DType;

use crate::graph::Graph;

/// The operations of a graph's forward pass, their dtypes and which of them are fused: [`Graph::report`]. `Display` is a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphReport {
    /// The operations, in the order in which they were recorded.
    pub operations: Vec<RecordedOperation>,
}

/// One operation with the dtypes of its operands and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedOperation {
    /// Its [name](crate::Signature::name); `cast` for the copies that autocast makes.
    pub name: &'static str,
    /// The dtypes of its operands.
    pub operands: Vec<DType>,
    /// The dtype of its result.
    pub dtype: DType,
    /// The shape of its result.
    pub shape: Vec<usize>,
    /// The [scope](Graph::enter) in which it was recorded, such as the name of a layer; empty outside of all scopes.
    pub scope: String,
    /// The floating-point operations of its kernels.
    pub flops: u64,
    /// Whether it is the cast of a parameter, which is recorded once however often the parameter is used.
    pub is_parameter_cast: bool,
    /// Whether [`Graph::compile`] fuses its kernel with the one that reads its result, which is then never stored. A backward
    /// pass that reads the result too prevents that, so ask after it has been recorded.
    pub is_fused: bool,
}

impl RecordedOperation {
    /// The size of its result in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size_bytes()
    }

    /// The size of the result in f32, in bytes; 0 for a cast, which f32 does without.
    pub fn bytes_in_f32(&self) -> usize {
        if self.name == "cast" { 0 } else { self.shape.iter().product::<usize>() * DType::F32.size_bytes() }
    }
}

impl GraphReport {
    /// The casts among the operations.
    pub fn casts(&self) -> impl Iterator<Item = &RecordedOperation> {
        self.operations.iter().filter(|operation| operation.name == "cast")
    }

    /// The size of all results in bytes.
    pub fn bytes(&self) -> usize {
        self.operations.iter().map(RecordedOperation::bytes).sum()
    }

    /// The size of all results in f32, in bytes.
    pub fn bytes_in_f32(&self) -> usize {
        self.operations.iter().map(RecordedOperation::bytes_in_f32).sum()
    }
}

impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:<16} {:<5} {:>20} {:>12} {:>12}", "operation", "reads", "makes", "shape", "bytes", "in f32")?;
        for operation in &self.operations {
            let RecordedOperation { name, operands, dtype, shape, is_fused, .. } = operation;
            let fused = if *is_fused { "  fused" } else { "" };
            let reads = operands.iter().map(|dtype| dtype.to_string()).collect::<Vec<_>>().join(" ");
            let shape = format!("{shape:?}");
            let (bytes, in_f32) = (operation.bytes(), operation.bytes_in_f32());
            writeln!(f, "{name:<16} {reads:<16} {dtype:<5} {shape:>20} {bytes:>12} {in_f32:>12}{fused}")?;
        }
        write!(f, "{:<59} {:>12} {:>12}", "all", self.bytes(), self.bytes_in_f32())
    }
}

impl Graph {
    /// The operations recorded so far: the dtypes that each reads and writes, and whether its kernel is fused with another's.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Precision};
    ///
    /// let graph = Graph::inference("layer");
    /// let x = graph.constant("x", &[0.1; 32], &[4, 8]);
    /// let weight = graph.constant("weight", &[0.2; 16], &[2, 8]);
    /// graph.autocast(Precision::Bf16, || x.linear(&weight, None, Activation::relu()));
    /// let report = graph.report();
    /// assert_eq!(report.casts().count(), 2);
    /// let linear = report.operations.last().unwrap();
    /// assert_eq!((linear.name, linear.dtype, linear.bytes(), linear.bytes_in_f32()), ("linear", DType::Bf16, 16, 32));
    /// ```
    pub fn report(&self) -> GraphReport {
        let inner = self.inner();
        let fused = inner.fused_keeping_results();
        let operations = inner.nodes.iter().filter_map(|node| {
            let is_parameter_cast = node.rounded.is_some_and(|of| inner.nodes[of].is_parameter);
            Some(RecordedOperation {
                name: node.op?,
                operands: node.inputs[..node.n_operands].iter().map(|&id| inner.nodes[id].slice.dtype()).collect(),
                dtype: node.slice.dtype(),
                shape: node.shape.clone(),
                scope: node.scope.clone(),
                flops: node.flops,
                is_parameter_cast,
                is_fused: inner.program.last_write(node.slice).is_some() && fused.last_write(node.slice).is_none(),
            })
        });
        GraphReport { operations: operations.collect() }
    }
}
