import numpy as np, torch
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, get_linear_schedule_with_warmup
device = "cuda" if torch.cuda.is_available() else "cpu"
config = WhisperConfig(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024, vocab_size=5000, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
extract = WhisperFeatureExtractor()
model = WhisperForConditionalGeneration(config).to(device)
model.freeze_encoder()
model.config.use_cache = False
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 10)
scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
for i in range(4):
    features = extract([np.random.randn(16000 * 5).astype(np.float32) for _ in range(4)], sampling_rate=16000, return_tensors="pt").input_features.to(device)
    labels = torch.randint(3, 5000, (4, 60)); labels[:, 50:] = -100
    labels = labels.to(device)
    with torch.autocast(device, dtype=torch.float16 if device == "cuda" else torch.bfloat16):
        loss = model(input_features=features, labels=labels).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer); scaler.update(); schedule.step(); optimizer.zero_grad()
    print(i, loss.item(), scaler.get_scale())
    if i == 0:
        model.eval()
        with torch.no_grad(): print(model.generate(features[:2], max_new_tokens=8).shape)
        model.train()
