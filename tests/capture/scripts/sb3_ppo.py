"""stable-baselines3: PPO with a vector environment of its own, network on the GPU, rollouts on the host."""
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

class Toy(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (64,), np.float32), gym.spaces.Discrete(5)
    def reset(self, seed=None, options=None):
        self.t = 0
        return np.zeros(64, np.float32), {}
    def step(self, action):
        self.t += 1
        return np.random.uniform(-1, 1, 64).astype(np.float32), float(action == 1), self.t > 50, False, {}

model = PPO("MlpPolicy", make_vec_env(Toy, n_envs=4), n_steps=64, batch_size=64, n_epochs=2, policy_kwargs=dict(net_arch=[1024, 1024]), device="cuda", verbose=1)
model.learn(total_timesteps=1024)
