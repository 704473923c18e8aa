//! Reading of a GGUF file: its metadata, its vectors, and its matrices, which are re-quantised to Q8_0.
//!
//! The file's Q4_1 has no SIMD kernel in candle (14 tokens/s), but Q8_0 has one (100 tokens/s), and the finer format
//! loses nothing. Tensors are read one by one and converted in groups of rows, so that loading holds at most one
//! source tensor in addition to the result.
//!
//! candle's own `QMatMul` is not used, because it runs on a process-wide pool of busy-waiting threads whose size can
//! only be set by environment variables. The kernels below it are public. [`Matrix::multiply`] calls them in the
//! rayon pool of the calling thread, so the engine decides how many cores are used.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read, Seek},
    path::Path,
};

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlType, QTensor,
        gguf_file::{Content, Value},
        k_quants::BlockQ8_0,
    },
};
use rayon::prelude::*;

use crate::types::Error;

/// The number of values in a quantised block.
const BLOCK: usize = BlockQ8_0::BLCK_SIZE;
/// Rows of a source tensor converted at a time: few enough to need only some MB, many enough to be fast.
const ROWS_AT_A_TIME: usize = 1024;

/// An open GGUF file.
pub(crate) struct Gguf {
    pub(crate) content: Content,
    reader: BufReader<File>,
}

impl Gguf {
    /// Opens a file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::FileMissing(path.to_owned()),
            _ => Error::Load(format!("{}: {error}", path.display())),
        })?;
        let mut reader = BufReader::new(file);
        let mut magic = [0; 4];
        if reader.read_exact(&mut magic).is_err() || &magic != b"GGUF" {
            return Err(Error::NotGguf(format!("{} does not start with \"GGUF\"", path.display())));
        }
        reader.rewind().map_err(|error| Error::Load(error.to_string()))?;
        let content = Content::read(&mut reader).map_err(|error| {
            let text = error.to_string();
            // candle has no error variant for this, so distinguish it from a corrupt header by its text.
            if text.contains("unknown dtype") {
                Error::UnsupportedQuantisation(text)
            } else {
                Error::NotGguf(text)
            }
        })?;
        Ok(Self { content, reader })
    }

    fn value(&self, key: &str) -> Result<&Value, Error> {
        self.content.metadata.get(key).ok_or_else(|| Error::NotGguf(format!("metadata {key} is missing")))
    }

    /// Returns a whole number of the metadata.
    pub(crate) fn number(&self, key: &str) -> Result<usize, Error> {
        let value = self.value(key)?;
        value
            .to_u64()
            .ok()
            .or_else(|| value.to_u32().ok().map(u64::from))
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| Error::NotGguf(format!("metadata {key} is not a whole number")))
    }

    /// Returns a fraction of the metadata.
    pub(crate) fn fraction(&self, key: &str) -> Result<f32, Error> {
        self.value(key)?.to_f32().map_err(|_| Error::NotGguf(format!("metadata {key} is not a number")))
    }

    /// Returns a string of the metadata.
    pub(crate) fn string(&self, key: &str) -> Result<&str, Error> {
        let text = self.value(key)?.to_string();
        text.map(String::as_str).map_err(|_| Error::NotGguf(format!("metadata {key} is not text")))
    }

    /// Returns an array of the metadata.
    pub(crate) fn array(&self, key: &str) -> Result<&[Value], Error> {
        let array = self.value(key)?.to_vec();
        array.map(Vec::as_slice).map_err(|_| Error::NotGguf(format!("metadata {key} is not an array")))
    }

    fn tensor(&mut self, name: &str) -> Result<QTensor, Error> {
        if !self.content.tensor_infos.contains_key(name) {
            return Err(Error::NotGguf(format!("tensor {name} is missing")));
        }
        self.content
            .tensor(&mut self.reader, name, &Device::Cpu)
            .map_err(|error| Error::NotGguf(format!("tensor {name}: {error}")))
    }

    /// Returns whether there is a tensor with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Returns a tensor with one dimension of the given length, as f32.
    pub(crate) fn vector(&mut self, name: &str, length: usize) -> Result<Tensor, Error> {
        let tensor = self.tensor(name)?;
        if tensor.shape().dims() != [length] {
            return Err(Error::NotGguf(format!("tensor {name} has the shape {:?}", tensor.shape())));
        }
        tensor.dequantize(&Device::Cpu).map_err(|error| Error::NotGguf(format!("tensor {name}: {error}")))
    }

    /// Returns a tensor of `rows` × `columns`, re-quantised.
    pub(crate) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, Error> {
        let tensor = self.tensor(name)?;
        if tensor.shape().dims() != [rows, columns] {
            return Err(Error::NotGguf(format!("tensor {name} has the shape {:?}", tensor.shape())));
        }
        Matrix::requantise(&tensor, rows, columns)
            .map_err(|error| Error::UnsupportedQuantisation(format!("tensor {name}: {error}")))
    }
}

/// A weight matrix in Q8_0, in row order.
pub(crate) struct Matrix {
    rows: usize,
    columns: usize,
    blocks: Vec<BlockQ8_0>,
}

impl Matrix {
    fn requantise(source: &QTensor, rows: usize, columns: usize) -> candle_core::Result<Self> {
        if columns == 0 || !columns.is_multiple_of(BLOCK) {
            candle_core::bail!("rows of {columns} values are no multiple of {BLOCK}");
        }
        let per_row = columns / BLOCK;
        let mut blocks = vec![BlockQ8_0::zeros(); rows * per_row];
        let last = u32::try_from(rows).map_err(candle_core::Error::wrap)?;
        for (start, target) in
            (0..last).step_by(ROWS_AT_A_TIME).zip(blocks.chunks_mut(ROWS_AT_A_TIME * per_row))
        {
            // `embedding` is the function of candle that de-quantises only some rows.
            let end = start + u32::try_from(target.len() / per_row).map_err(candle_core::Error::wrap)?;
            let values = source.embedding(&Tensor::arange(start, end, &Device::Cpu)?)?;
            BlockQ8_0::from_float(&values.flatten_all()?.to_vec1::<f32>()?, target);
        }
        Ok(Self { rows, columns, blocks })
    }

    /// Returns the rows with these numbers as f32: `[numbers, columns]`.
    pub(crate) fn lookup(&self, numbers: &[u32]) -> candle_core::Result<Tensor> {
        let per_row = self.columns / BLOCK;
        let mut values = vec![0f32; numbers.len() * self.columns];
        for (number, target) in numbers.iter().zip(values.chunks_exact_mut(self.columns)) {
            let start = *number as usize * per_row;
            let Some(row) = self.blocks.get(start..start + per_row) else {
                candle_core::bail!("token {number} is outside of the vocabulary");
            };
            BlockQ8_0::to_float(row, target);
        }
        Tensor::from_vec(values, (numbers.len(), self.columns), &Device::Cpu)
    }

    /// Returns `input · selfᵀ`: from `[count, columns]` to `[count, rows]`, in parallel over the rows of this matrix.
    pub(crate) fn multiply(&self, input: &Tensor) -> candle_core::Result<Tensor> {
        let (count, columns) = input.dims2()?;
        if columns != self.columns {
            candle_core::bail!("{columns} columns do not fit a matrix of {}", self.columns);
        }
        let per_row = columns / BLOCK;
        let mut quantised = vec![BlockQ8_0::zeros(); count * per_row];
        BlockQ8_0::from_float(&input.flatten_all()?.to_vec1::<f32>()?, &mut quantised);

        // Each task computes a band of this matrix's rows, so the result is laid out transposed.
        let bands = rayon::current_num_threads() * 4;
        let band = self.rows.div_ceil(bands).next_multiple_of(4);
        let mut output = vec![0f32; self.rows * count];
        output.par_chunks_mut(band * count).zip(self.blocks.par_chunks(band * per_row)).for_each(
            |(output, weights)| {
                for (output, weights) in output.chunks_mut(4 * count).zip(weights.chunks(4 * per_row)) {
                    multiply_rows(weights, &quantised, output, count, per_row);
                }
            },
        );
        let output = Tensor::from_vec(output, (self.rows, count), &Device::Cpu)?;
        if count == 1 { output.reshape((1, self.rows)) } else { output.t()?.contiguous() }
    }
}

/// Computes the products of up to four rows of weights with all inputs.
fn multiply_rows(
    weights: &[BlockQ8_0],
    inputs: &[BlockQ8_0],
    output: &mut [f32],
    count: usize,
    per_row: usize,
) {
    let columns = per_row * BLOCK;
    let mut rows = weights.chunks_exact(per_row);
    if let (Some(w0), Some(w1), Some(w2), Some(w3)) = (rows.next(), rows.next(), rows.next(), rows.next()) {
        let (o01, o23) = output.split_at_mut(2 * count);
        let (o0, o1) = o01.split_at_mut(count);
        let (o2, o3) = o23.split_at_mut(count);
        let outputs = o0.iter_mut().zip(o1).zip(o2.iter_mut().zip(o3));
        for (((o0, o1), (o2, o3)), input) in outputs.zip(inputs.chunks_exact(per_row)) {
            (*o0, *o1, *o2, *o3) = BlockQ8_0::vec_dot_4(columns, w0, w1, w2, w3, input);
        }
        return;
    }
    for (row, output) in weights.chunks_exact(per_row).zip(output.chunks_mut(count)) {
        for (output, input) in output.iter_mut().zip(inputs.chunks_exact(per_row)) {
            *output = BlockQ8_0::vec_dot(columns, row, input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::quantized::GgmlDType;

    /// The whole matrix and single rows agree with the plain product, for sizes with and without a remainder.
    #[test]
    fn multiplies_like_a_plain_matrix() {
        for rows in [1, 4, 7, 64] {
            let weights = Tensor::randn(0f32, 1., (rows, 64), &Device::Cpu).unwrap();
            let quantised = QTensor::quantize(&weights, GgmlDType::Q8_0).unwrap();
            let matrix = Matrix::requantise(&quantised, rows, 64).unwrap();
            for count in [1, 5] {
                let input = Tensor::randn(0f32, 1., (count, 64), &Device::Cpu).unwrap();
                let wanted = input.matmul(&weights.t().unwrap()).unwrap().to_vec2::<f32>().unwrap();
                let got = matrix.multiply(&input).unwrap().to_vec2::<f32>().unwrap();
                for (wanted, got) in wanted.iter().flatten().zip(got.iter().flatten()) {
                    assert!((wanted - got).abs() < 0.5, "{wanted} and {got} differ by more than rounding");
                }
            }
        }
    }

    #[test]
    fn refuses_rows_that_are_no_whole_blocks_and_unknown_tokens() {
        let tensor = QTensor::quantize(
            &Tensor::zeros((2, 20), candle_core::DType::F32, &Device::Cpu).unwrap(),
            GgmlDType::F32,
        );
        assert!(Matrix::requantise(&tensor.unwrap(), 2, 20).is_err());
        let tensor = QTensor::quantize(
            &Tensor::zeros((2, 32), candle_core::DType::F32, &Device::Cpu).unwrap(),
            GgmlDType::F32,
        );
        assert!(Matrix::requantise(&tensor.unwrap(), 2, 32).unwrap().lookup(&[2]).is_err());
    }
}
