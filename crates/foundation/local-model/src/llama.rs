//! The architectures llama and qwen2: the forward pass over tokens, with a cache of keys and values.
//!
//! Threads: [`Matrix::multiply`] multiplies matrices, and candle does everything else, with loops that run in the
//! rayon pool of the calling thread. The exception are candle's element-wise operations over 65,536 or more values,
//! which use a process-wide pool of busy-waiting threads. The forward pass stays below this size: by
//! [`Shape::chunk`], and by masking only the newest columns of the scores. The test with the real model checks that
//! this pool is never started.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{ops, rotary_emb};

use crate::{
    types::Error,
    weights::{Gguf, Matrix},
};

/// The maximum context in tokens, regardless of the file. The cache takes 46 kB per token of SmolLM2-135M, and a
/// prompt of this length takes half a minute on one core.
const MAX_CONTEXT: usize = 4096;
/// The maximum number of tokens computed at once. More would not be faster.
const MAX_CHUNK: usize = 32;
/// The number of values from which candle uses its own thread pool (see above).
const POOLED: usize = 65_536;
/// The number of tokens by which the cache grows.
const CACHE_STEP: usize = 256;

/// The sizes of the model, from the file's metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) context: usize,
    pub(crate) vocabulary: usize,
    layers: usize,
    pub(crate) width: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    epsilon: f32,
    rope_base: f32,
    pairs: Pairs,
}

/// The values of a head that the rotary position embedding rotates together. The rows of the query and key matrices
/// are stored accordingly.
#[derive(Clone, Copy, Debug)]
enum Pairs {
    /// Each value with its neighbour, as in llama files.
    Neighbours,
    /// Each value with the one half a head further, as in qwen2.
    Halves,
}

impl Shape {
    fn read(file: &Gguf) -> std::result::Result<Self, Error> {
        let architecture = file.string("general.architecture")?;
        let pairs = match architecture {
            "llama" => Pairs::Neighbours,
            "qwen2" => Pairs::Halves,
            _ => return Err(Error::UnsupportedArchitecture(format!("architecture {architecture}"))),
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let heads = file.number(&key("attention.head_count"))?;
        let width = file.number(&key("embedding_length"))?;
        let shape = Self {
            context: file.number(&key("context_length"))?.min(MAX_CONTEXT),
            vocabulary: file.array("tokenizer.ggml.tokens")?.len(),
            layers: file.number(&key("block_count"))?,
            width,
            inner: file.number(&key("feed_forward_length"))?,
            heads,
            kv_heads: file.number(&key("attention.head_count_kv")).unwrap_or(heads),
            head: width.checked_div(heads).unwrap_or(0),
            epsilon: file.fraction(&key("attention.layer_norm_rms_epsilon"))?,
            rope_base: file.fraction(&key("rope.freq_base")).unwrap_or(10_000.),
            pairs,
        };
        let rotated = file.number(&key("rope.dimension_count")).unwrap_or(shape.head);
        let fits = shape.heads > 0
            && shape.kv_heads > 0
            && shape.context >= 64
            && shape.head * shape.heads == width
            && shape.head.is_multiple_of(2)
            && shape.heads.is_multiple_of(shape.kv_heads)
            && rotated == shape.head;
        if fits { Ok(shape) } else { Err(Error::UnsupportedArchitecture(format!("sizes {shape:?}"))) }
    }

    /// Returns how many tokens to compute at once. The widest values of a step stay below the size from which candle
    /// uses its own pool.
    pub(crate) fn chunk(&self) -> usize {
        ((POOLED - 1) / self.inner.max(self.width).max(1)).clamp(1, MAX_CHUNK)
    }
}

/// A matrix with an optional bias.
struct Projection {
    weights: Matrix,
    bias: Option<Tensor>,
}

impl Projection {
    fn read(file: &mut Gguf, name: &str, rows: usize, columns: usize) -> std::result::Result<Self, Error> {
        let weights = file.matrix(&format!("{name}.weight"), rows, columns)?;
        let bias = format!("{name}.bias");
        let bias = if file.has(&bias) { Some(file.vector(&bias, rows)?) } else { None };
        Ok(Self { weights, bias })
    }

    fn multiply(&self, input: &Tensor) -> Result<Tensor> {
        let products = self.weights.multiply(input)?;
        match &self.bias {
            Some(bias) => products.broadcast_add(bias),
            None => Ok(products),
        }
    }
}

struct Layer {
    attention_norm: Tensor,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Matrix,
    feed_norm: Tensor,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// The weights of a model.
pub(crate) struct Llama {
    pub(crate) shape: Shape,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Tensor,
    /// The output matrix. `None` if the embedding is also used for the output.
    output: Option<Matrix>,
    cosine: Tensor,
    sine: Tensor,
}

impl Llama {
    /// Loads all weights of the file.
    pub(crate) fn load(file: &mut Gguf) -> std::result::Result<Self, Error> {
        let shape = Shape::read(file)?;
        let (width, inner, kv_width) = (shape.width, shape.inner, shape.kv_heads * shape.head);
        let embedding = file.matrix("token_embd.weight", shape.vocabulary, width)?;
        let mut layers = Vec::with_capacity(shape.layers);
        for number in 0..shape.layers {
            let part = |part: &str| format!("blk.{number}.{part}");
            let name = |part: &str| format!("blk.{number}.{part}.weight");
            layers.push(Layer {
                attention_norm: file.vector(&name("attn_norm"), width)?,
                query: Projection::read(file, &part("attn_q"), width, width)?,
                key: Projection::read(file, &part("attn_k"), kv_width, width)?,
                value: Projection::read(file, &part("attn_v"), kv_width, width)?,
                output: file.matrix(&name("attn_output"), width, width)?,
                feed_norm: file.vector(&name("ffn_norm"), width)?,
                gate: file.matrix(&name("ffn_gate"), inner, width)?,
                up: file.matrix(&name("ffn_up"), inner, width)?,
                down: file.matrix(&name("ffn_down"), width, inner)?,
            });
        }
        let norm = file.vector("output_norm.weight", width)?;
        let output = if file.has("output.weight") {
            Some(file.matrix("output.weight", shape.vocabulary, width)?)
        } else {
            None
        };
        let (cosine, sine) = rotations(shape.context, shape.head, shape.rope_base)?;
        Ok(Self { shape, embedding, layers, norm, output, cosine, sine })
    }

    /// Appends `tokens` to the cache and returns logits: of the last token as `[1, vocabulary]`, or of all tokens as
    /// `[tokens, vocabulary]`.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache, every: bool) -> Result<Tensor> {
        let (start, count) = (cache.length, tokens.len());
        if count == 0 || start + count > self.shape.context {
            candle_core::bail!(
                "{count} tokens after {start} do not fit the context of {}",
                self.shape.context
            );
        }
        cache.reserve(count)?;
        let cosine = self.cosine.narrow(0, start, count)?;
        let sine = self.sine.narrow(0, start, count)?;
        let mask = if count > 1 { Some(causal_mask(count)?) } else { None };

        let mut hidden = self.embedding.lookup(tokens)?;
        for (layer, (keys, values)) in self.layers.iter().zip(&cache.layers) {
            let input = ops::rms_norm(&hidden, &layer.attention_norm, self.shape.epsilon)?;
            let query = self.heads(&layer.query.multiply(&input)?, self.shape.heads)?;
            let query = self.rotate(&query, &cosine, &sine)?;
            let key = self.heads(&layer.key.multiply(&input)?, self.shape.kv_heads)?;
            let key = self.rotate(&key, &cosine, &sine)?;
            let value = self.heads(&layer.value.multiply(&input)?, self.shape.kv_heads)?;
            keys.slice_set(&key, 1, start)?;
            values.slice_set(&value, 1, start)?;
            let keys = keys.narrow(1, 0, start + count)?;
            let values = values.narrow(1, 0, start + count)?;
            let mixed = self.attend(&query, &keys, &values, mask.as_ref())?;
            hidden = (hidden + layer.output.multiply(&mixed)?)?;

            let input = ops::rms_norm(&hidden, &layer.feed_norm, self.shape.epsilon)?;
            let gate = ops::silu(&layer.gate.multiply(&input)?)?;
            let inner = (gate * layer.up.multiply(&input)?)?;
            hidden = (hidden + layer.down.multiply(&inner)?)?;
        }
        cache.length = start + count;

        // Usually only the last row is needed, and the output matrix is the largest.
        let hidden = if every { hidden } else { hidden.narrow(0, count - 1, 1)?.contiguous()? };
        let hidden = ops::rms_norm(&hidden, &self.norm, self.shape.epsilon)?;
        self.output.as_ref().unwrap_or(&self.embedding).multiply(&hidden)
    }

    /// Reshapes `[tokens, heads × head]` to `[heads, tokens, head]`.
    fn heads(&self, input: &Tensor, heads: usize) -> Result<Tensor> {
        input.reshape((input.dim(0)?, heads, self.shape.head))?.transpose(0, 1)?.contiguous()
    }

    /// Applies the rotary position embedding to `[heads, tokens, head]`.
    fn rotate(&self, input: &Tensor, cosine: &Tensor, sine: &Tensor) -> Result<Tensor> {
        let input = input.unsqueeze(0)?;
        let rotated = match self.shape.pairs {
            Pairs::Neighbours => rotary_emb::rope_i(&input, cosine, sine),
            Pairs::Halves => rotary_emb::rope(&input, cosine, sine),
        };
        rotated?.squeeze(0)
    }

    /// Computes the attention of all heads. The query is `[heads, tokens, head]`, keys and values are `[kv_heads,
    /// cached, head]`.
    fn attend(
        &self,
        query: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let Shape { heads, kv_heads, head, .. } = self.shape;
        let (tokens, cached) = (query.dim(1)?, keys.dim(1)?);
        // Query heads that share a key head are adjacent, so stack them instead of repeating the keys.
        let query = (query / (head as f64).sqrt())?.reshape((kv_heads, heads / kv_heads * tokens, head))?;
        let scores = query.matmul(&keys.t()?)?.reshape((heads, tokens, cached))?;
        if let Some(mask) = mask {
            let newest = scores.narrow(2, cached - tokens, tokens)?.broadcast_add(mask)?;
            scores.slice_set(&newest, 2, cached - tokens)?;
        }
        let weights =
            ops::softmax_last_dim(&scores)?.reshape((kv_heads, heads / kv_heads * tokens, cached))?;
        let mixed = weights.matmul(values)?.reshape((heads, tokens, head))?;
        mixed.transpose(0, 1)?.reshape((tokens, heads * head))
    }

    /// Returns an empty cache for this model.
    pub(crate) fn cache(&self) -> Result<Cache> {
        let Shape { layers, kv_heads, head, context, .. } = self.shape;
        let empty = || Tensor::zeros((kv_heads, CACHE_STEP, head), DType::F32, &Device::Cpu);
        let layers = (0..layers).map(|_| Ok((empty()?, empty()?))).collect::<Result<_>>()?;
        Ok(Cache { layers, length: 0, capacity: CACHE_STEP, context })
    }
}

/// The keys and values of the tokens processed so far, per layer `[kv_heads, capacity, head]`.
pub(crate) struct Cache {
    layers: Vec<(Tensor, Tensor)>,
    length: usize,
    capacity: usize,
    context: usize,
}

impl Cache {
    /// Removes all but the first `length` tokens.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        if self.length + more <= self.capacity {
            return Ok(());
        }
        let capacity = (self.length + more).next_multiple_of(CACHE_STEP).min(self.context.max(CACHE_STEP));
        for (keys, values) in &mut self.layers {
            for old in [keys, values] {
                let (heads, _, head) = old.dims3()?;
                let new = Tensor::zeros((heads, capacity, head), DType::F32, &Device::Cpu)?;
                new.slice_set(&old.contiguous()?, 1, 0)?;
                *old = new;
            }
        }
        self.capacity = capacity;
        Ok(())
    }
}

/// Returns cosine and sine per position and pair, each `[context, head / 2]`.
fn rotations(context: usize, head: usize, base: f32) -> Result<(Tensor, Tensor)> {
    // Use plain loops: the tables are large enough to start candle's pool.
    let frequencies: Vec<f32> = (0..head).step_by(2).map(|i| base.powf(-(i as f32) / head as f32)).collect();
    let mut angles = Vec::with_capacity(context * frequencies.len());
    for position in 0..context {
        angles.extend(frequencies.iter().map(|frequency| position as f32 * frequency));
    }
    let table = |function: fn(f32) -> f32| {
        let values: Vec<f32> = angles.iter().copied().map(function).collect();
        Tensor::from_vec(values, (context, head / 2), &Device::Cpu)
    };
    Ok((table(f32::cos)?, table(f32::sin)?))
}

/// Returns the mask `[count, count]`: 0 for visible tokens, minus infinity for later ones. Cached tokens are visible
/// to all and need no mask.
fn causal_mask(count: usize) -> Result<Tensor> {
    let allowed = |row: usize, column: usize| if column <= row { 0. } else { f32::NEG_INFINITY };
    let mask: Vec<f32> =
        (0..count).flat_map(|row| (0..count).map(move |column| allowed(row, column))).collect();
    Tensor::from_vec(mask, (count, count), &Device::Cpu)
}

/// Returns the logits of the last row.
pub(crate) fn last_row(logits: &Tensor) -> Result<Vec<f32>> {
    logits.get_on_dim(0, logits.dim(0)? - 1)?.to_vec1()
}

/// Returns the natural logarithm of each token's probability, one token per row.
pub(crate) fn log_probabilities(logits: &Tensor, tokens: &[u32]) -> Result<Vec<f32>> {
    let rows = logits.to_vec2::<f32>()?;
    let log = |(row, token): (&Vec<f32>, &u32)| {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = row.iter().map(|logit| (logit - most).exp()).sum();
        row.get(*token as usize).map_or(f32::NEG_INFINITY, |logit| logit - most - sum.ln())
    };
    Ok(rows.iter().zip(tokens).map(log).collect())
}
