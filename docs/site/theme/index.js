/** The generator's theme with the look of the console. Its fonts are the system's. */
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;
