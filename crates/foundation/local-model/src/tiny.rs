//! A tiny llama for tests: a GGUF file with random weights and one token per byte. It uses the same code as the real
//! model, within milliseconds. Its answers are noise.

use std::{io::BufWriter, path::PathBuf};

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlDType, QTensor,
        gguf_file::{self, Value},
    },
};
use tempfile::TempDir;

use crate::sample::mix;

const WIDTH: usize = 64;
const INNER: usize = 96;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const LAYERS: usize = 2;
/// The size of its context in tokens.
pub(crate) const CONTEXT: usize = 1024;

/// Returns reproducible weights in the given format.
fn weights(shape: &[usize], seed: u64, format: GgmlDType) -> QTensor {
    let count = shape.iter().product::<usize>() as u64;
    let values: Vec<f32> =
        (0..count).map(|i| (mix(seed * 1_000_003 + i) % 2001) as f32 / 5000. - 0.2).collect();
    QTensor::quantize(&Tensor::from_vec(values, shape, &Device::Cpu).unwrap(), format).unwrap()
}

fn ones() -> QTensor {
    QTensor::quantize(&Tensor::ones(WIDTH, candle_core::DType::F32, &Device::Cpu).unwrap(), GgmlDType::F32)
        .unwrap()
}

/// Writes the file. It exists as long as the folder.
pub(crate) fn file() -> (TempDir, PathBuf) {
    file_with(|_| ())
}

/// Writes the file with changed metadata.
pub(crate) fn file_with(change: impl FnOnce(&mut Vec<(&'static str, Value)>)) -> (TempDir, PathBuf) {
    written("llama", change)
}

/// Writes a file of the architecture qwen2.
pub(crate) fn qwen2() -> (TempDir, PathBuf) {
    written("qwen2", |_| ())
}

fn written(architecture: &str, change: impl FnOnce(&mut Vec<(&'static str, Value)>)) -> (TempDir, PathBuf) {
    let mut tokens = vec!["<|endoftext|>".to_owned(), "<|im_start|>".to_owned(), "<|im_end|>".to_owned()];
    let controls = tokens.len();
    // The alphabet of GPT-2 in the order of its characters. The crate does not depend on the order.
    let printable = (0x21..=0x7E).chain(0xA1..=0xAC).chain(0xAE..=0xFF);
    tokens.extend(printable.chain(0x100..0x144).filter_map(char::from_u32).map(String::from));
    let vocabulary = tokens.len();
    assert_eq!(vocabulary, 256 + controls);
    let types = (0..vocabulary).map(|i| Value::I32(if i < controls { 3 } else { 1 })).collect();

    let number = |n: usize| Value::U32(u32::try_from(n).unwrap());
    let mut metadata = vec![
        ("general.architecture", Value::String(architecture.into())),
        ("general.name", Value::String("Tiny".into())),
        ("llama.block_count", number(LAYERS)),
        ("llama.context_length", number(CONTEXT)),
        ("llama.embedding_length", number(WIDTH)),
        ("llama.feed_forward_length", number(INNER)),
        ("llama.attention.head_count", number(HEADS)),
        ("llama.attention.head_count_kv", number(KV_HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.freq_base", Value::F32(10_000.)),
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("smollm".into())),
        ("tokenizer.ggml.tokens", Value::Array(tokens.into_iter().map(Value::String).collect())),
        ("tokenizer.ggml.token_type", Value::Array(types)),
        ("tokenizer.ggml.merges", Value::Array(Vec::new())),
        ("tokenizer.ggml.eos_token_id", number(2)),
    ];
    change(&mut metadata);

    let tensors = tensors(architecture, vocabulary);

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tiny.gguf");
    let mut writer = BufWriter::new(std::fs::File::create(&path).unwrap());
    // The keys of sizes begin with the name of the architecture.
    let named: Vec<(String, Value)> = metadata
        .into_iter()
        .map(|(key, value)| match key.strip_prefix("llama.") {
            Some(size) => (format!("{architecture}.{size}"), value),
            None => (key.to_owned(), value),
        })
        .collect();
    let metadata: Vec<(&str, &Value)> = named.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let tensors: Vec<(&str, &QTensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    gguf_file::write(&mut writer, &metadata, &tensors).unwrap();
    drop(writer);
    (folder, path)
}

/// Returns the weights. Those of qwen2 have biases.
fn tensors(architecture: &str, vocabulary: usize) -> Vec<(String, QTensor)> {
    let kv = WIDTH / HEADS * KV_HEADS;
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), weights(&[vocabulary, WIDTH], 1, GgmlDType::Q8_0)),
        ("output_norm.weight".to_owned(), ones()),
    ];
    for layer in 0..LAYERS {
        let random =
            |rows, columns, seed| weights(&[rows, columns], 10 * (layer as u64 + 1) + seed, GgmlDType::Q4_1);
        if architecture == "qwen2" {
            for (number, (part, rows)) in (20u64..).zip([("attn_q", WIDTH), ("attn_k", kv), ("attn_v", kv)]) {
                let bias = weights(&[rows], 10 * (layer as u64 + 1) + number, GgmlDType::F32);
                tensors.push((format!("blk.{layer}.{part}.bias"), bias));
            }
        }
        let mut add = |part: &str, tensor| tensors.push((format!("blk.{layer}.{part}.weight"), tensor));
        add("attn_norm", ones());
        add("ffn_norm", ones());
        add("attn_q", random(WIDTH, WIDTH, 0));
        add("attn_k", random(kv, WIDTH, 1));
        add("attn_v", random(kv, WIDTH, 2));
        add("attn_output", random(WIDTH, WIDTH, 3));
        add("ffn_gate", random(INNER, WIDTH, 4));
        add("ffn_up", random(INNER, WIDTH, 5));
        add("ffn_down", random(WIDTH, INNER, 6));
    }
    tensors
}
