"""The settings that have policies, by name."""

from battery.arms_setting import ArmsSetting
from battery.cases import Setting
from battery.diffusion_setting import DiffusionSetting
from battery.dynamics_setting import DynamicsSetting
from battery.users_setting import UsersSetting

SETTINGS: dict[str, Setting] = {
    "arms": ArmsSetting(),
    "users": UsersSetting(),
    "diffusion": DiffusionSetting(),
    "dynamics": DynamicsSetting(),
}
